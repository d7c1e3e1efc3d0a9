// Package shadow holds the shadow of a lane that runs against what the model of a cluster
// measures, in virtual time: with the real texts, tokenizer, workload and lane.
package shadow
