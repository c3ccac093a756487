"""A process that behaves as `python -m sglang.launch_server` was seen to: log lines, answers, children, ways to die.

STAND_IN (JSON) says how: `log` (file to print), `info` (file that /server_info answers), `starting_s` (503 for so
long), `health_s` (each /health takes so long), `dies` ([text, exit code] before it listens), `hangs` (never listens),
`ignores_term`, `child` (a scheduler of its own session that ignores TERM too), `drains_s` (TERM takes so long),
`token_s` (pause before each of the four tokens of an answer), `dies_asked` ([text, seconds]: the first question for
tokens is cut off, the text logged, and the process ends so many seconds later, as when a scheduler dies), `flushes`
(ends at the first question after so many flushes of its cache), `only_with` (words of its command without which it does
not), `meta` (more of an answer's last meta_info).
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOUR = json.loads(os.environ.get("STAND_IN", "{}"))
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
BEGAN_S = time.monotonic()
FLUSHES: list[float] = []


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(BEHAVIOUR.get("health_s", 0.0) if self.path == "/health" else 0.0)
        wanted = BEHAVIOUR.get("key")
        if wanted and self.path != "/health" and self.headers.get("Authorization") != f"Bearer {wanted}":
            self.answer(401, b'{"error": "Unauthorized"}')
        elif self.path == "/health":
            is_starting = time.monotonic() - BEGAN_S < BEHAVIOUR.get("starting_s", 0.0)
            self.answer(503 if is_starting else 200, b"")
        elif self.path == BEHAVIOUR.get("info_path", "/server_info"):
            with open(BEHAVIOUR["info"], encoding="utf-8") as file:
                info = json.load(file)
            info["launch_command"] = shlex.join(sys.argv[1:])
            info.update(model_path=BEHAVIOUR.get("model", option("--model-path")), port=int(option("--port")))
            info.update(BEHAVIOUR.get("changes", {}))
            self.answer(200, json.dumps(info).encode())
        elif self.path == "/metrics" and "metrics" in BEHAVIOUR:
            with open(BEHAVIOUR["metrics"], "rb") as file:
                self.answer(200, file.read())
        elif self.path == "/flush_cache" and BEHAVIOUR.get("flushes_by_get"):
            self.answer(200, b"Cache flushed.")
        else:
            self.answer(404, b'{"detail":"Not Found"}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/generate":
            self.generate()
            return
        if self.path == "/flush_cache":
            FLUSHES.append(time.monotonic())
        code = 405 if BEHAVIOUR.get("flushes_by_get") else BEHAVIOUR.get("flush", 200)
        self.answer(code if self.path == "/flush_cache" else 404, b"Cache flushed.")

    def generate(self) -> None:
        if len(FLUSHES) >= BEHAVIOUR.get("flushes", 1e9) and BEHAVIOUR.get("only_with", "") in shlex.join(sys.argv):
            os._exit(1)
        if "dies_asked" in BEHAVIOUR:
            text, seconds = BEHAVIOUR["dies_asked"]
            print(text)
            threading.Timer(seconds, lambda: os._exit(1)).start()
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for count in range(1, 5):
            time.sleep(BEHAVIOUR.get("token_s", 0.0))
            meta = {"id": "1", "prompt_tokens": 2, "completion_tokens": count, "cached_tokens": 0}
            meta["finish_reason"] = {"type": "length", "length": 4} if count == 4 else None
            meta |= BEHAVIOUR.get("meta", {}) if count == 4 and "--speculative-num-steps" in sys.argv else {}
            piece = {"text": "x" * count, "output_ids": list(range(count)), "meta_info": meta}
            self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        print('INFO:     127.0.0.1:50000 - "GET /health HTTP/1.1" 200 OK')


def asked(number: int, frame: object) -> None:
    if BEHAVIOUR.get("ignores_term"):
        print("SIGTERM received, and nothing done")
        return
    time.sleep(BEHAVIOUR.get("drains_s", 0.0))
    os._exit(0)


def main() -> int:
    signal.signal(signal.SIGTERM, asked)
    if BEHAVIOUR.get("child"):
        child = ["sglang::scheduler", "-c", CHILD]
        subprocess.Popen(child, executable=sys.executable, start_new_session=True)
    if "log" in BEHAVIOUR:
        with open(BEHAVIOUR["log"], encoding="utf-8", newline="") as file:
            print(file.read(), end="")
    if "dies" in BEHAVIOUR:
        text, code = BEHAVIOUR["dies"]
        print(text)
        return int(code)
    if BEHAVIOUR.get("hangs"):
        time.sleep(600)
    address = (option("--host"), int(option("--port")))
    try:
        server = ThreadingHTTPServer(address, Answers)
    except OSError:  # as uvicorn and the warm-up do: the other server at this port answers the warm-up
        print(f"ERROR:    [Errno 98] error while attempting to bind on address {address}: address already in use")
        print("[2026-11-30 01:47:44] The server is fired up and ready to roll!")
        time.sleep(BEHAVIOUR.get("lingers_s", 0.0))
        return 3
    if "lives_s" in BEHAVIOUR:
        threading.Timer(BEHAVIOUR["lives_s"], lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    print("[2026-11-30 01:47:44] The server is fired up and ready to roll!")
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
