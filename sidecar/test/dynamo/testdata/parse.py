"""Gives command lines and environments to Dynamo's own parsers, and says what they make of them.

Reads a JSON list of {name, program, env, args} from stdin, where program is frontend, trtllm, vllm or sglang, and writes a
list of {name, error, ...} in the same order. The engines themselves are not here. In their place stand stubs with the
engines' flags that the chart uses, typed as the engines' documentation types them, and nothing else: a flag that neither
Dynamo nor the stub knows is an error. What an engine makes of a value is not checked here.
"""

import argparse
import json
import os
import sys
import types
from typing import Literal, Optional

import pydantic


def module(name, **content):
    """Puts a module of these things where an import finds it."""
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent] if parent in sys.modules else module(parent), child, made)
    return made


class BuildConfig(pydantic.BaseModel):
    """TensorRT-LLM's, as far as Dynamo takes its defaults from it."""

    max_batch_size: int = 2048
    max_num_tokens: int = 8192
    max_seq_len: Optional[int] = None
    max_beam_width: int = 1


class KVEventsConfig(pydantic.BaseModel, extra="forbid"):
    """vLLM's."""

    enable_kv_cache_events: bool = False
    publisher: Literal["null", "zmq"] = "null"
    endpoint: str = "tcp://*:5557"
    topic: str = ""


class EngineArgs:
    """What the engines make of their flags: an object with all of them."""

    load_format = "auto"
    data_parallel_size = 1
    stream_interval = 1

    @classmethod
    def from_cli_args(cls, args):
        made = cls()
        made.__dict__.update(vars(args))
        return made

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class VllmArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser, **_):
        switch = argparse.BooleanOptionalAction
        parser.add_argument("--model")
        parser.add_argument("--served-model-name", nargs="+")
        parser.add_argument("--tensor-parallel-size", "-tp", type=int)
        parser.add_argument("--max-num-batched-tokens", type=int)
        parser.add_argument("--max-num-seqs", type=int)
        parser.add_argument("--block-size", type=int)
        parser.add_argument("--kv-cache-dtype", choices=["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"])
        parser.add_argument("--gpu-memory-utilization", type=float)
        parser.add_argument("--enable-prefix-caching", action=switch)
        parser.add_argument("--enable-chunked-prefill", action=switch)
        parser.add_argument("--kv-events-config", type=KVEventsConfig.model_validate_json)
        parser.add_argument("--speculative-config", "-sc", type=json.loads)


class SglangArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model")
        parser.add_argument("--served-model-name")
        parser.add_argument("--tensor-parallel-size", "--tp-size", dest="tp_size", type=int)
        parser.add_argument("--chunked-prefill-size", type=int)
        parser.add_argument("--max-prefill-tokens", type=int)
        parser.add_argument("--max-running-requests", type=int)
        parser.add_argument("--page-size", type=int)
        parser.add_argument("--kv-cache-dtype", choices=["auto", "fp8_e5m2", "fp8_e4m3", "bf16"])
        parser.add_argument("--mem-fraction-static", type=float)
        parser.add_argument("--enable-metrics", action="store_true")
        parser.add_argument("--kv-events-config")
        parser.add_argument("--speculative-algorithm", choices=["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"])
        parser.add_argument("--speculative-draft-model-path")
        parser.add_argument("--speculative-num-steps", type=int)
        parser.add_argument("--speculative-eagle-topk", type=int)
        parser.add_argument("--speculative-num-draft-tokens", type=int)


module("tensorrt_llm")
module("tensorrt_llm.llmapi", BuildConfig=BuildConfig)
module("vllm")
module("vllm.distributed")
module("vllm.distributed.kv_events", KVEventsConfig=KVEventsConfig)
module("vllm.engine")
module("vllm.engine.arg_utils", AsyncEngineArgs=VllmArgs)
module("vllm.utils", FlexibleArgumentParser=argparse.ArgumentParser)


def frontend(args):
    from dynamo.frontend.main import parse_args

    sys.argv = ["dynamo.frontend", *args]
    config = parse_args()[0]
    return {"router_mode": config.router_mode, "block_size": config.kv_cache_block_size, "events": config.use_kv_events}


def trtllm(args):
    from dynamo.trtllm.args import parse_args

    config = parse_args(args)
    return {
        "model": config.model,
        "served": config.served_model_name,
        "tensor_parallel": config.tensor_parallel_size,
        "max_tokens": config.max_num_tokens,
        "max_batch": config.max_batch_size,
        "block_size": config.kv_block_size,
        "events": config.use_kv_events,
        "metrics": config.publish_metrics,
        "engine": json.loads(config.override_engine_args),
    }


def vllm(args):
    import dynamo.vllm

    # An agent that is off unless asked for, and wants vLLM itself.
    module("dynamo.vllm.state_agent", validate_state_agent_worker=lambda _: None)
    from dynamo.vllm.args import parse_args

    config = parse_args(args)
    engine = config.engine_args
    return {
        "model": config.model,
        "served": config.served_model_name,
        "tensor_parallel": engine.tensor_parallel_size,
        "max_tokens": engine.max_num_batched_tokens,
        "max_batch": engine.max_num_seqs,
        "block_size": engine.block_size,
        "events": config.use_kv_events,
        "metrics": True,  # vLLM's are on unless --disable-log-stats is given
        "speculation": engine.speculative_config,
    }


def sglang(args):
    """Dynamo's whole parser wants SGLang and the model's files, so this puts its parts together as that does."""
    from dynamo.common.configuration.groups import DynamoRuntimeConfig
    from dynamo.common.configuration.groups.router_args import parse_worker_router_config, register_worker_router_help
    from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
    from dynamo.sglang.backend_args import DynamoSGLangArgGroup, DynamoSGLangConfig

    class Config(DynamoRuntimeConfig, DynamoSGLangConfig):
        def validate(self):
            DynamoRuntimeConfig.validate(self)
            DynamoSGLangConfig.validate(self)

    parser = argparse.ArgumentParser()
    DynamoRuntimeArgGroup().add_arguments(parser)
    DynamoSGLangArgGroup().add_arguments(parser)
    register_worker_router_help(parser)
    known, rest = parser.parse_known_args(args)
    config = Config.from_cli_args(known)
    _, rest = parse_worker_router_config(rest)
    config.validate()
    engines = argparse.ArgumentParser()
    SglangArgs.add_cli_args(engines)
    engine = SglangArgs.from_cli_args(engines.parse_args(rest))
    return {
        "model": engine.model_path,
        "served": engine.served_model_name,
        "tensor_parallel": engine.tp_size,
        "max_tokens": engine.chunked_prefill_size,
        "max_batch": engine.max_running_requests,
        "block_size": engine.page_size,
        "events": json.loads(engine.kv_events_config).get("publisher", "null") != "null",  # as dynamo.sglang.args has it
        "metrics": engine.enable_metrics,
        "speculation": engine.speculative_algorithm,
    }


def main():
    own, answers = dict(os.environ), []
    for case in json.load(sys.stdin):
        os.environ.clear()
        os.environ.update(own, **case["env"])
        answer = {"name": case["name"], "error": ""}
        try:
            answer |= globals()[case["program"]](case["args"])
        except (Exception, SystemExit) as error:  # argparse ends the process where it refuses
            answer["error"] = f"{type(error).__name__}: {error}"
        answers.append(answer)
    json.dump(answers, sys.stdout)


main()
