// Package local has what a booth runs on this machine that is not ours: a real NVIDIA
// Dynamo with mock workers ([InstallDynamo], [StartDynamo]), and a Grafana that is
// installed or downloaded ([FindGrafana], [InstallGrafana]).
package local
