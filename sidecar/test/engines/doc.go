// Package engines runs trials on real vLLM engines behind real routers on this machine's CPU, and compares the
// results with a separate computation over the turns that the load generator stored. Its tests have the build tag
// engines: they need a directory, named by the variable ENGINES or engines in the user's cache directory, with two
// virtual environments of Python, vllm and routers (the package sglang-router), and a model in the directory model.
//
// Traces are replayed on one of these engines, and on a simulated worker, in the forms of Mooncake, Dynamo and Bailian.
//
// It also runs routers and proxies before simulated engines, which need neither vLLM nor a model. Those it installs:
// packages of Python into virtual environments, HAProxy and nginx from Debian's packages.
package engines
