// Package torture subjects the load generator to hostile peers, many clients, full disks and crashes, behind the
// build tag torture. It measures whether the API answers an operator, what is lost, the duration of the recovery, the
// cost, and, since the target's token times are known, the error of the figures.
package torture
