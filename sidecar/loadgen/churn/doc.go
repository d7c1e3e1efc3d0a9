// Package churn computes what an event, such as the loss of a worker, cost the users of each arm, and how long it took
// until they were served as before. It has no clock and no I/O.
//
// # Recovery
//
// Times are seconds since the event's action began. A turn counts at the moment it was sent; one that was sent before
// the event and had no first token by then, or failed later, counts at 0. A failed turn counts as slower than any
// other, and one without a first token at the end of the observation as having waited until then.
//
// The time after the event is covered by windows of w seconds, a fifth of w apart. A window is as before if its TTFT
// p95 (nearest rank) is at most
//
//	max(1.1·b, exp(m + t·s·√(1 + 1/n)))
//
// where b is the p95 of the whole time before the event, m the mean of the logarithms of the p95 of the n separate
// windows of w seconds before it, s the standard deviation of these logarithms around the means of their instances,
// pooled over all instances of the arm, and t the one-sided quantile of Student's t with the pooled degrees of freedom
// and an error of 5 % shared by all windows after the event. The second term is the prediction limit of all those
// windows: without it, chance alone would keep the p95 of few turns more than 10 % above b. For the hit rate, cached
// tokens by prompt tokens, it is at least
//
//	min(0.9·h, m − t·s·√(1 + 1/n))
//
// on the scale of the shares. The recovery time is the beginning of the first window from which on every window is as
// before, up to the end of the observation. Where the last window is not, the time is censored: it is more than the
// beginning of the last window, and enters medians and intervals as that or anything above, never as missing.
//
// The prompt tokens lost are Σ (h·prompt − cached) over the turns until the hit rate is back, or else until the end.
package churn
