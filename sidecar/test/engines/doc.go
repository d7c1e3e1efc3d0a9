// Package engines runs trials on real vLLM engines behind real routers on this machine's CPU, and compares the
// results with a separate computation over the turns that the load generator stored. Its tests have the build tag
// engines: they need a directory, named by the variable ENGINES or engines in the user's cache directory, with two
// virtual environments of Python, vllm and routers (the package sglang-router), and a model in the directory model.
//
// It also runs each installed router before simulated engines, which need neither vLLM nor a model. The virtual
// environments routers (sglang-router and vllm-router), smg, envoy and litellm are in the same directory.
package engines
