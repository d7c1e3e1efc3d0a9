// Package decisions runs thousands of trials on simulated spans with a known truth, and prints how often they are
// wrong, how often they decide, and when: the table of docs/statistics.md.
package decisions
