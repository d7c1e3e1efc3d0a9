// Package kubernetes is the mode driver for a Dynamo that a DynamoGraphDeployment (DGD)
// describes. It changes the routing mode in that object, and waits until the operator has
// applied the change.
//
// The object is the truth. The routing mode is the variable DYN_ROUTER_MODE, of the frontend
// or of the whole graph. A switch is one JSON Patch of it, with tests, so that it fails where
// another client was faster. The patch adds an annotation with the author, the two modes and
// the deadline of the switch. A load generator that was killed during a switch finds it and
// resumes, and a second load generator does not interfere.
//
// Operators before Dynamo 1.2 serve the object as nvidia.com/v1alpha1 only. In that version
// components are a map and a restart cannot be requested; the driver changes a variable of all
// components instead.
//
// The operator's status alone does not show that a switch is done: for a moment it describes
// the previous generation, under Grove it is Ready too early, and after a roll-back its phase
// is Completed before it is Ready. A switch is therefore done in three steps: the status is of
// the new generation and good, every pod is ready with the wanted environment and no old pod
// is left, and the frontend lists every worker. It has a deadline, since the operator has none.
package kubernetes
