"""A server on standard input and output that does what its script says. Standard library only, so it starts at once.

The script is JSON in ``SCRIPT``: ``tools`` (entries of a listing, or ``pages`` of them, or ``endless`` ones), ``junk``
(lines printed before and between, in hex; ``junk_file`` has many), ``ledger`` (a file in which every call that began is
written down), and what single tools do (``acts``): ``die``, ``hang``, ``echo``, ``fail``, ``slow`` (progress without
end), ``ask`` (elicitation), ``change`` (other tools from now on, ``later``), ``big`` (an answer of many bytes),
``wait`` (until the file ``gate`` is there).
"""

import json
import os
import sys
import threading
import time

SCRIPT = json.loads(os.environ["SCRIPT"])
LOCK = threading.Lock()
ASKED = {}
CANCELLED = set()
STATE = {"later": False, "next": 0}


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ledger(*words):
    if SCRIPT.get("ledger"):
        with open(SCRIPT["ledger"], "a", encoding="utf-8") as file:
            file.write(" ".join(map(str, words)) + "\n")


def junk():
    lines = SCRIPT.get("junk", ())
    if "junk_file" in SCRIPT:
        with open(SCRIPT["junk_file"], encoding="ascii") as file:
            lines = file.read().split("\n")
    for line in lines:
        sys.stdout.buffer.write(bytes.fromhex(line) + b"\n")
    sys.stdout.buffer.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def listing(params):
    tools = SCRIPT["later"] if STATE["later"] and "later" in SCRIPT else SCRIPT.get("tools", [])
    if "loop" in SCRIPT:
        return {"tools": tools, "nextCursor": SCRIPT["loop"]}
    if "endless" in SCRIPT:
        STATE["next"] += 1
        return {"tools": [], "nextCursor": f"page {STATE['next']}"}
    if "pages" in SCRIPT:
        number = int(params.get("cursor") or 0)
        more = {"nextCursor": str(number + 1)} if number + 1 < len(SCRIPT["pages"]) else {}
        return {"tools": SCRIPT["pages"][number], **more}
    return {"tools": tools}


def ask(params):
    STATE["next"] += 1
    number = f"ask-{STATE['next']}"
    ASKED[number] = [threading.Event(), None]
    send({"id": number, "method": "elicitation/create", "params": params})
    ASKED[number][0].wait(30)
    return ASKED[number][1]


def act(request, name, arguments, token):
    what = SCRIPT.get("acts", {}).get(name, "echo")
    ledger("call", name, json.dumps(arguments, sort_keys=True))
    if what == "die":
        os._exit(3)
    if what == "hang":
        while request not in CANCELLED:
            time.sleep(0.01)
        ledger("cancelled", name)
        return None
    if what == "wait":
        while not os.path.exists(SCRIPT["gate"]):
            time.sleep(0.01)
    if what == "fail":
        return text("no such thing", isError=True)
    if what == "slow":
        for number in range(SCRIPT.get("steps", 5)):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": number + 1}})
            time.sleep(SCRIPT.get("step_s", 0.05))
    if what == "change":
        STATE["later"] = True
        send({"method": "notifications/tools/list_changed"})
    if what == "retract":
        send({"id": "retracted", "method": "elicitation/create", "params": SCRIPT["question"]})
        while not os.path.exists(SCRIPT["gate"]):
            time.sleep(0.01)
        send({"method": "notifications/cancelled", "params": {"requestId": "retracted"}})
        while os.path.exists(SCRIPT["gate"]):
            time.sleep(0.01)
        return text("never mind")
    if what == "ask":
        return text(json.dumps(ask(SCRIPT["question"]), sort_keys=True))
    if what == "big":
        return text("x" * SCRIPT["bytes"])
    if what == "structured":
        return text("", structuredContent=SCRIPT["value"])
    if what == "env":
        return text(json.dumps(dict(os.environ)))
    return text(json.dumps(arguments, sort_keys=True))


def call(request, params):
    token = (params.get("_meta") or {}).get("progressToken")
    result = act(request, params["name"], params.get("arguments") or {}, token)
    if result is not None:
        junk()
        send({"id": request, "result": result})


def answer(message):
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        waiting = ASKED.get(request)
        if waiting is not None:
            waiting[1] = message.get("result") or message.get("error")
            waiting[0].set()
    elif method == "initialize":
        if SCRIPT.get("mute"):
            return
        capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
        info = {"name": "scripted", "version": "1"}
        version = params["protocolVersion"]
        send({"id": request, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        send({"id": request, "result": listing(params)})
    elif method == "tools/call":
        threading.Thread(target=call, args=(request, params), daemon=True).start()
    elif method == "resources/list":
        send({"id": request, "result": {"resources": [{"uri": "note://1", "name": "one", "description": "a note"}]}})
    elif method == "resources/read":
        contents = [{"uri": params["uri"], "mimeType": "text/plain", "text": f"the text of {params['uri']}"}]
        send({"id": request, "result": {"contents": contents}})
    elif method == "prompts/list":
        send(
            {
                "id": request,
                "result": {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]},
            }
        )
    elif method == "prompts/get":
        said = f"Greet {params['arguments']['who']}."
        messages = [{"role": "user", "content": {"type": "text", "text": said}}]
        send({"id": request, "result": {"messages": messages}})
    elif method == "notifications/cancelled":
        CANCELLED.add(params.get("requestId"))
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "Method not found"}})


def main():
    ledger("start", os.getpid())
    if SCRIPT.get("fork"):
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
        import signal

        if SCRIPT["fork"] != "group":
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ledger("child", os.getpid())
    if SCRIPT.get("exit"):
        sys.stderr.write(SCRIPT["exit"] + "\n")
        sys.exit(1)
    time.sleep(SCRIPT.get("delay_s", 0))
    junk()
    for line in sys.stdin.buffer:
        answer(json.loads(line))
    while SCRIPT.get("stay"):
        time.sleep(0.05)


main()
