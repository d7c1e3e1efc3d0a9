// Package kubernetes tests the product against a real Kubernetes: etcd, API server, controllers and scheduler of the
// program that "go tool mage kube" builds, with KWOK in place of nodes, all on loopback. [Start] starts a control plane
// and skips the test where that program is missing. Pods run nothing, but are scheduled, become ready, roll and end as
// real ones do. A pod's annotation kvbooth/start sets how long it takes to be ready. A pod whose image has "broken" in
// its name is never ready.
//
// [ControlPlane.Operator] handles a DynamoGraphDeployment as Dynamo's operator does, with the peculiarities that were
// observed. [ControlPlane.Frontend] is a simulated cluster that serves in place of the pods of a graph.
//
// The tests have the build tag kubernetes. Those of other packages may use this one under the same tag.
package kubernetes
