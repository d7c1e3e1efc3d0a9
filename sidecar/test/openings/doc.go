// Package openings holds the load generator's workload against the model of a cluster,
// in virtual time: what a text of its own for every conversation does to the times to
// the first token, turn by turn, under each router. Text and tokenizer are the real ones.
package openings
