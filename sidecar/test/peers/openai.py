"""Sends requests to an OpenAI-compatible server as an application would, and prints the answers as JSON."""

import json
import sys
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
results = {"models": [m.id for m in client.models.list()]}
model = results["models"][0]
results["model"] = client.models.retrieve(model).id
question = [{"role": "user", "content": "What does a KV cache hold?"}]


def ask(**more):
    return client.chat.completions.create(model=model, messages=question, **more)


def refused(**more):
    try:
        ask(**more)
    except openai.APIStatusError as e:
        return {"error": type(e).__name__, "status": e.status_code, "message": e.body["message"]}


def summary(answer):
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


results["whole"] = summary(ask(max_tokens=80))
results["stopped"] = summary(ask(max_tokens=80, stop=" the"))
results["least"] = summary(ask(max_tokens=80, extra_body={"min_tokens": 79}))
results["streams"] = [streamed(150) for _ in range(4)]
results["refused"] = {
    "temperature": refused(temperature=2.5),
    "n": refused(n=2),
    "unknown": refused(extra_body={"nonsense": 1}),
}
question = []
results["refused"]["messages"] = refused()
model = "other"
results["refused"]["model"] = refused()
json.dump(results, sys.stdout)
