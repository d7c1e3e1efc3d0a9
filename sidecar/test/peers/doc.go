// Package peers holds the simulated cluster against clients that nobody here wrote:
// OpenAI's Python library, AIPerf and GuideLLM. Each asks it for real, and what it
// measures is held against what the cluster says of the same requests. Its tests
// have the build tag peers, since they need Python 3.10 or later and, the first time,
// a package index: 71 MB for the library, 1.2 GB for AIPerf, 6 GB for GuideLLM, which
// depends on PyTorch with all of CUDA.
package peers
