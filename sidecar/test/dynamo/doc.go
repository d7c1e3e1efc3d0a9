// Package dynamo tests the load generator with a real Dynamo and mock workers on loopback: the real binary, frontend,
// router and event plane. Its tests have the build tag dynamo, since they need Python 3.10 or later, and a minute to
// install Dynamo the first time.
package dynamo
