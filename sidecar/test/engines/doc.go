// Package engines tries the product on engines and routers of others. Its tests have the build tag engines.
//
// Real vLLM engines run on this machine's CPU, as `booth engines` installs and starts them, alone, behind each router
// and in a Dynamo: the figures of the load generator are compared with the engines' counters, the results of trials
// with a separate computation over the stored turns, replayed traces with their hit rates, and the simulated engines
// with the real ones. Routers and proxies before simulated engines are recognized, ranked by `booth arena`, and killed.
//
// Packages of Python are installed into virtual environments in the user's cache directory, HAProxy and nginx from
// Debian's packages. vLLM takes 6.5 GB there.
package engines
