// Package engines runs trials on real vLLM engines behind real routers, on this machine's CPU, and holds what they say
// against a separate computation over the turns that the load generator stored. Its tests have the build tag engines:
// they need the folder that the variable ENGINES names, else engines in the user's cache folder, with two virtual
// environments of Python, vllm and routers (the package sglang-router), and a model in the folder model.
package engines
