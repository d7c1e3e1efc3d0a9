// Package kubernetes holds the product against a real Kubernetes: etcd, API server, controllers and scheduler of the
// program that "go tool mage kube" builds, with KWOK in place of nodes, all on loopback. [Start] brings one up and skips
// the test where there is no such program. Pods run nothing, but are scheduled, become ready, roll and end as real ones
// do; a pod's annotation kvbooth/start says how long it takes to be ready, and one whose image has "broken" in its name
// never is.
//
// On it, [ControlPlane.Operator] treats a DynamoGraphDeployment as Dynamo's operator was seen to, with what is odd
// about that, and [ControlPlane.Frontend] is a simulated cluster that serves as the pods of one would.
//
// The tests have the build tag kubernetes. Those of other packages may use this one under the same tag.
package kubernetes
