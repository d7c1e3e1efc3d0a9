// Package shadow compares the shadow of a lane with what the model of a cluster measures, in virtual time, with the
// real texts, tokenizer, workload and lane.
package shadow
