"""Asks an OpenAI-compatible server as an application would, and prints what came as JSON."""

import json
import sys
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
said = {"models": [m.id for m in client.models.list()]}
model = said["models"][0]
said["model"] = client.models.retrieve(model).id
question = [{"role": "user", "content": "What does a KV cache hold?"}]


def ask(**more):
    return client.chat.completions.create(model=model, messages=question, **more)


def refused(**more):
    try:
        ask(**more)
    except openai.APIStatusError as e:
        return {"error": type(e).__name__, "status": e.status_code, "message": e.body["message"]}


def told(answer):
    return {
        "text": answer.choices[0].message.content,
        "reason": answer.choices[0].finish_reason,
        "tokens": answer.usage.completion_tokens,
        "prompt": answer.usage.prompt_tokens,
    }


def streamed(tokens):
    """One answer as a stream, with the times of its first and last text in seconds."""
    began = time.perf_counter()
    first = last = usage = timing = None
    text = ""
    for chunk in ask(
        max_completion_tokens=tokens, stream=True, stream_options={"include_usage": True},
        extra_body={"ignore_eos": True, "nvext": {"extra_fields": ["timing"]}},
    ):
        now = time.perf_counter() - began
        usage = chunk.usage or usage
        timing = (getattr(chunk, "nvext", None) or {}).get("timing") or timing
        if chunk.choices and chunk.choices[0].delta.content:
            text += chunk.choices[0].delta.content
            first, last = first or now, now
    return {"text": text, "tokens": usage.completion_tokens, "prompt": usage.prompt_tokens, "ttft": first, "latency": last, "timing": timing}


said["whole"] = told(ask(max_tokens=80))
said["stopped"] = told(ask(max_tokens=80, stop=" the"))
said["least"] = told(ask(max_tokens=80, extra_body={"min_tokens": 79}))
said["streams"] = [streamed(150) for _ in range(4)]
said["refused"] = {
    "temperature": refused(temperature=2.5),
    "n": refused(n=2),
    "unknown": refused(extra_body={"nonsense": 1}),
}
question = []
said["refused"]["messages"] = refused()
model = "other"
said["refused"]["model"] = refused()
json.dump(said, sys.stdout)
