// Package local installs and runs third-party programs of a booth on this machine: NVIDIA Dynamo with mock workers
// ([InstallDynamo], [StartDynamo]), Grafana ([FindGrafana], [InstallGrafana]) and Prometheus ([FindPrometheus],
// [InstallPrometheus]).
package local
