// Package dynamo holds the load generator against a real Dynamo with mock
// workers: the real binary, the real frontend, router and event plane, all on
// loopback. Its tests have the build tag dynamo, since they need Python 3.10 or
// later and, the first time, a minute to install Dynamo.
package dynamo
