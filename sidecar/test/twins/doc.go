// Package twins holds two lanes that run the same conversations against the model of a
// cluster in virtual time: what they send, what they measure, and what the pair says of them.
package twins
