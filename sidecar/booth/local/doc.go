// Package local starts, watches and ends processes on this machine: children in
// general ([Start]), a real NVIDIA Dynamo with mock workers ([InstallDynamo],
// [StartDynamo]), and a Grafana that is installed or downloaded ([FindGrafana],
// [InstallGrafana]). It signals only processes that it started, and on Linux none of
// them outlives this process, however that ends.
package local
