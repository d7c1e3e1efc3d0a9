// The definitions of other projects' resources, which tests apply to a control plane: nothing of these modules is compiled.
module kvbooth/tools/crds

go 1.26.5

require (
	github.com/ai-dynamo/grove/operator/api v0.1.0-alpha.12-rc1
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.6.3
)
