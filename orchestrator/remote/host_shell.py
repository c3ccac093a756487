"""How the fixed scripts for the host's shell begin: what `~` means there, the same for the shell and for Python."""

NO_HOME = 96
"""The exit code of a script that was given a `~/` and found no home."""
NO_HOME_WORDS = "HOME is not set on the host; give `root` and `python` as absolute paths"

# A start-up file may unset HOME or empty it; Python then asks the passwd, or takes `/`. So both ask it here.
# `expand` sets `path` and prints nothing: `$(...)` would cut newlines off the end.
EXPAND = f"""
case $HOME in /*) ;; *)
  HOME=$(getent passwd "$(id -u)" 2>/dev/null || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd 2>/dev/null)
  HOME=${{HOME%:*}}; HOME=${{HOME##*:}}
  case $HOME in /*) export HOME;; *) unset HOME;; esac;;
esac
expand() {{
  case $1 in "~") path=$HOME;; "~/"*) path="${{HOME%/}}/${{1#"~/"}}";; *) path=$1; return;; esac
  [ -n "$HOME" ] || {{ echo '{NO_HOME_WORDS}' >&2; exit {NO_HOME}; }}
}}
"""
