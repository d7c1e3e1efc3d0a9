// Package openings runs the load generator's workload with the model of a cluster in virtual time. It tests the
// effect of a text of its own for each conversation on the times to first token, by turn and router. Texts and
// tokenizer are the real ones.
package openings
