"""A server on standard input and output that prints what its script says, word for word. Standard library only.

The script is JSON in ``SCRIPT``: ``does`` gives, for a method (or ``tools/call NAME``), a list of steps; what has none
is answered as a good server would (``tools`` are its tools, or ``listing`` is a file that holds the whole answer; a
call is answered with ``ok``). Every call is put into ``ledger``. ``deaf``: nothing is read after the first listing.

A step is ``line`` (text to print; ``$ID`` is the request's id, ``$N`` the number of the print, ``$CLOCK`` the time, and
``$FILL`` and ``$UNFILL`` are ``fill`` and ``unfill``, ``size`` times), ``times`` (how often), ``err`` (text for the
error output), ``env`` (the variable to print there), ``exit``, ``sleep``, ``close`` (the output), ``answer`` (as a good
server would), ``once`` (only the first time).
"""

import json
import os
import sys
import time

SCRIPT = json.loads(os.environ["SCRIPT"])
OUT = sys.stdout.buffer
DONE = []


def put(text):
    OUT.write(text.encode() + b"\n")
    OUT.flush()


def ledger(*words):
    with open(SCRIPT["ledger"], "a", encoding="utf-8") as file:
        file.write(" ".join(map(str, words)) + "\n")


def good(method, params):
    if method == "initialize":
        info = {"name": "liar", "version": "1"}
        capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
        return {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        if "listing" in SCRIPT:
            with open(SCRIPT["listing"], encoding="utf-8") as file:
                return json.load(file)
        return {"tools": SCRIPT.get("tools", [])}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "ok"}]}
    return None


def reply(method, request, params):
    result = good(method, params)
    if result is not None:
        put(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}))
    elif request is not None:
        put(json.dumps({"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": "no"}}))


def step(what, method, request, params):
    if what.get("once") and what in DONE:
        return
    DONE.append(what)
    if "line" in what:
        line = what["line"].replace("$ID", json.dumps(request)).replace("$CLOCK", str(time.monotonic()))
        line = line.replace("$FILL", what.get("fill", "x") * what.get("size", 0))
        line = line.replace("$UNFILL", what.get("unfill", "") * what.get("size", 0))
        for number in range(what.get("times", 1)):
            put(line.replace("$N", str(number)))
    if "err" in what:
        for _ in range(what.get("times", 1)):
            sys.stderr.write(what["err"] + "\n")
        sys.stderr.flush()
    if "answer" in what:
        reply(method, request, params)
    if "env" in what:
        sys.stderr.write(os.environ[what["env"]] + "\n")
        sys.stderr.flush()
    if "sleep" in what:
        time.sleep(what["sleep"])
    if "close" in what:
        os.close(1)
    if "exit" in what:
        os._exit(what["exit"])


def main():
    ledger("start", os.getpid())
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
        key = method
        if method == "tools/call":
            ledger("call", params["name"])
            key = f"tools/call {params['name']}"
        elif method is None:
            ledger("answered", json.dumps(message.get("result") or message.get("error"), sort_keys=True))
            continue
        elif method == "tools/list":
            ledger("listed")
        elif method == "notifications/cancelled":
            ledger("cancelled")
        does = SCRIPT.get("does", {}).get(key)
        for each in [{"answer": True}] if does is None else does:
            step(each, method, request, params)
        while SCRIPT.get("deaf") and method == "tools/list":
            time.sleep(0.05)


main()
