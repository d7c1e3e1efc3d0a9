// Package sim describes the serving cluster that the product imitates where
// there are no GPUs: how long its GPUs take ([Profile]) and how its model reads
// text (the tokenizer and the chat template). Both are also written in the
// forms that NVIDIA Dynamo's mock workers take, so that a real Dynamo on this
// machine serves the same cluster.
package sim
