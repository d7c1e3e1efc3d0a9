// Package decisions runs thousands of trials on simulated spans whose truth is known, and prints how often they are
// wrong, how often they decide, and when: the table of docs/statistics.md.
package decisions
