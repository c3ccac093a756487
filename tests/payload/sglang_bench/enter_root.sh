# Enters another root, made of bind mounts in a mount namespace of its own (so nothing has to be undone), and runs the rest
# of the words there: sh enter_root.sh ROOT PYTHON_FOLDER yes|no(/proc) COMMAND...
set -e
root=$1 python=$2 proc=$3
shift 3
bound() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
}
for folder in /lib /lib64 /usr/lib /usr/lib64 /dev "$python/lib"; do
    if [ -d "$folder" ]; then bound "$folder" "$folder"; fi
done
bound "$python" /engine
mkdir -p "$root/proc" "$root/tmp"
if [ "$proc" = yes ]; then mount -t proc proc "$root/proc"; fi
exec chroot "$root" "$@"
