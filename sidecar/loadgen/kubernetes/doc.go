// Package kubernetes is the mode driver for a Dynamo that a DynamoGraphDeployment (DGD)
// describes: it changes the routing mode in that object, and waits until the operator has
// made the cluster so.
//
// The object is the truth. The routing mode is the variable DYN_ROUTER_MODE, of the frontend
// or of the whole graph, and a switch is one JSON Patch of it, with tests, so that it fails
// where somebody else was faster. The patch puts an annotation beside it that tells who
// switches, from where, to where and until when: a load generator that was killed in the
// middle finds it and goes on, and a second one keeps its hands off.
//
// Operators before Dynamo 1.2 serve the object as nvidia.com/v1alpha1 alone, in which components are a
// map and a restart cannot be asked for: a variable of all components with a new value takes its place.
//
// The operator's status alone does not say that a switch is done: for a moment it describes
// the generation before, under Grove it is Ready too early, and after a roll-back its phase is
// Completed before it is Ready. So a switch is done when the status is of the new generation
// and good, then every pod is ready with the wanted environment and no old one is left, then
// the frontend lists every worker. It has a deadline, since the operator has none.
package kubernetes
