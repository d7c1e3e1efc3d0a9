"""compare.py REAL EVENTS SIMULATED EVENTS: asks two engines the same and prints, as rows of a Markdown table, what only
one of them has. REAL and SIMULATED are URLs, EVENTS the ZeroMQ endpoints of their KV events.
"""

import json
import re
import sys
import time
import urllib.error
import urllib.request

import msgspec
import zmq

MESSAGES = [{"role": "user", "content": "What does a cache of keys and values hold? " * 60}]


def ask(url, path, body=None):
    """Returns the status and the text of an answer."""
    data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def paths(value, at=""):
    """Returns the paths of all members, with the kind of each value that is not null."""
    if isinstance(value, dict):
        return {p for k, v in value.items() for p in {f"{at}.{k}".lstrip(".")} | paths(v, f"{at}.{k}".lstrip("."))}
    if isinstance(value, list):
        return {p for v in value for p in paths(v, at + "[]")}
    return set()


def chunk(data):
    """Describes a chunk of a stream by what is not empty in it."""
    if data == "[DONE]":
        return data
    value = json.loads(data)
    parts = []
    for choice in value.get("choices", []):
        parts += sorted(k for k, v in (choice.get("delta") or {}).items() if v or v == "")
        parts += ["text"] if choice.get("text") else []
        parts += ["finish_reason"] if choice.get("finish_reason") else []
    return "+".join(parts + (["usage"] if value.get("usage") else [])) or "empty"


def stream(url, path, body):
    """Returns the paths in the chunks of an answer, and the order of their forms."""
    status, text = ask(url, path, body | {"stream": True, "stream_options": {"include_usage": True}})
    found, shapes = {f"status {status}"}, []
    for data in re.findall(r"^data: (.*)$", text, re.M):
        if data != "[DONE]":
            found |= paths(json.loads(data))
        if chunk(data) not in shapes[-1:]:
            shapes.append(chunk(data))
    return found | {"order: " + ", ".join(shapes)}


def whole(url, path, body=None):
    """Returns the status and the paths of an answer."""
    status, text = ask(url, path, body)
    try:
        return {f"status {status}"} | paths(json.loads(text))
    except ValueError:
        return {f"status {status}", "text" if text else "empty"}


def ids(url, path, body):
    """Returns the token ids of an answer, whatever their name."""
    value = json.loads(ask(url, path, body)[1])
    return value.get("tokens") or value.get("token_ids") or []


def metrics(url):
    """Returns the names of the engine's metrics."""
    names = re.findall(r"^# TYPE (vllm:\w+) ", ask(url, "/metrics")[1], re.M)
    return {name.removesuffix("_total") for name in names if not name.endswith("_created")}


def events(url, endpoint, model):
    """Returns the frames and the members of the events that a new prompt causes, and its token ids in them."""
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.connect(endpoint)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    time.sleep(1)  # of the subscription
    messages = [{"role": "user", "content": str(time.time_ns()) + MESSAGES[0]["content"]}]
    prompt = ids(url, "/tokenize", {"model": model, "messages": messages})
    ask(url, "/v1/chat/completions", {"model": model, "max_tokens": 3, "messages": messages})
    found, stored = set(), []
    while socket.poll(3000):
        frames = socket.recv_multipart()
        _, batch, *rest = msgspec.msgpack.decode(frames[-1])
        found |= {f"frames: {len(frames)}", f"topic: {frames[0].decode() or 'empty'}", f"batch: {2 + len(rest)}"}
        for event in batch:
            if not isinstance(event, dict):
                found.add(f"an array: {event[0]}")
                continue
            found |= {f"{event['type']}.{k}" for k, v in event.items() if v is not None}
            stored += event.get("token_ids", [])
    found.add(f"token ids of the prompt: {'equal' if stored[:256] == prompt[:256] else 'different'}")
    return found


def main():
    real, real_events, simulated, simulated_events = sys.argv[1:]
    sides = []
    for url, endpoint in (real, real_events), (simulated, simulated_events):
        model = json.loads(ask(url, "/v1/models")[1])["data"][0]["id"]
        chat = {"model": model, "messages": MESSAGES, "max_tokens": 6, "ignore_eos": True}
        text = {"model": model, "prompt": MESSAGES[0]["content"], "max_tokens": 6, "ignore_eos": True}
        calls = {
            "`POST /v1/chat/completions`, streamed": stream(url, "/v1/chat/completions", chat),
            "`POST /v1/chat/completions`": whole(url, "/v1/chat/completions", chat),
            "`POST /v1/completions`, streamed": stream(url, "/v1/completions", text),
            "`POST /v1/completions`": whole(url, "/v1/completions", text),
            "`POST /v1/chat/completions/render`": whole(url, "/v1/chat/completions/render", chat),
            "`POST /tokenize`": whole(url, "/tokenize", {"model": model, "messages": MESSAGES}),
            "unknown model": whole(url, "/v1/chat/completions", chat | {"model": "none"}),
            "no JSON": whole(url, "/v1/chat/completions", b"{"),
            "`max_tokens` −1": whole(url, "/v1/chat/completions", chat | {"max_tokens": -1}),
            "no messages": whole(url, "/v1/chat/completions", {"model": model}),
            "prompt too long": whole(url, "/v1/completions", text | {"max_tokens": 10_000_000}),
            "metrics": metrics(url),
            "KV events": events(url, endpoint, model),
        }
        for path in "/v1/models", "/version", "/load", "/health":
            calls[f"`GET {path}`"] = whole(url, path)
        given = ids(url, "/tokenize", {"model": model, "messages": MESSAGES})
        calls["token ids of a chat"] = {f"{len(given)} ids, {hash(tuple(given))}"}
        sides.append(calls)
    for call in sides[0]:
        first, second = (", ".join(f"`{p}`" for p in sorted(a - b)) for a, b in ((sides[0][call], sides[1][call]),
                                                                                (sides[1][call], sides[0][call])))
        print(f"| {call} | {first or '–'} | {second or '–'} |")


main()
