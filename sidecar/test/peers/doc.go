// Package peers tests the simulated cluster with clients of other projects: OpenAI's Python library, AIPerf and
// GuideLLM. Each sends real requests, and its figures are compared with the cluster's of the same requests. A server of
// its own shows how late AIPerf, GuideLLM and the load generator start requests at a rate. The tests have the build tag
// peers, since they need Python 3.10 or later and, the first time, a package index: 71 MB for the library, 1.2 GB for
// AIPerf, 6 GB for GuideLLM, which depends on PyTorch with all of CUDA.
package peers
