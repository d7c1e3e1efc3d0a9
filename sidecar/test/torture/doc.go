// Package torture does to the load generator what hostile peers, crowds, full disks
// and crashes do, behind the build tag torture. Meanwhile it measures whether the API
// answers an operator, what is lost, how long recovery takes, what it costs, and, since
// the target's token times are known, how wrong the figures become.
package torture
