//go:build chart

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the schema or the templates do not allow is refused with its path, at every depth, and with what to do.
func TestRefused(t *testing.T) {
	serving := []string{"serving.create=true"}
	gateway := []string{
		"serving.name=booth", "gateway.enabled=true", "gateway.className=x",
		"gateway.host=booth.example.com",
	}
	nats := "members.nats.url=nats://nats.dynamo.svc:4222"
	for _, c := range []struct {
		on        []string // the values that are set before
		set, says string   // values with commas between them
	}{
		{nil, "", "serving.name"}, // the defaults alone have nothing to put load on
		{nil, "serving.name=booth,gateway.enabled=true", "gateway.host is empty"},

		{gateway, "servng.create=true", "at '': additional properties 'servng' not allowed"},
		{gateway, "serving.creat=true", "at '/serving': additional properties 'creat' not allowed"},
		{gateway, "serving.worker.resource.x=1", "at '/serving/worker': additional properties 'resource' not allowed"},
		{
			gateway, "loadgen.config.target.ulr=http://x",
			"at '/loadgen/config/target': additional properties 'ulr' not allowed",
		},
		{gateway, "loadgen.persistence.sise=1Gi", "at '/loadgen/persistence': additional properties 'sise' not allowed"},
		{gateway, "serving.engine=llamacpp", "at '/serving/engine': value must be one of 'trtllm', "},
		{gateway, "serving.mode=random", "at '/serving/mode': value must be one of "},
		{gateway, "serving.workers=many", "at '/serving/workers': got string, want integer"},
		{gateway, "serving.tensorParallel=3", "at '/serving/tensorParallel': value must be one of 1, 2, "},
		{gateway, "serving.create=please", "at '/serving/create': got string, want boolean"},
		{gateway, "image=x", "at '/image': got string, want object"},
		{gateway, "gateway.tls.certificateRefs=x", "at '/gateway/tls/certificateRefs': got string, want array"},

		{
			serving, "serving.dynamo.version=1.1.1",
			"allowed is 1.2 or later: older operators, such as that of the recorded runs (0.9.0)",
		},
		{serving, "serving.dynamo.version=newest", "allowed is a version of Dynamo such as 1.6.1"},
		{serving, "serving.speculation=eagle3", "Add -f values-eagle3.yaml"},
		{serving, "serving.variants={draft}", `serving.variants is [draft] without serving.speculation "off"`},
		{serving, "serving.env[0].name=DYN_ROUTER_MODE", "use serving.mode"},
		{serving, "serving.name=a-graph-whose-name-is-longer-than-all-others", "at most 37 characters"},
		{serving, "model.create=true", "model.volume.nfs.path, or model.volume.storageClass, or model.volume.existingClaim"},
		{serving, "serving.worker.image=example.com/engine:latest", "at '/serving/worker/image'"},
		{serving, "serving.workers=0", "at '/serving/workers'"},
		{serving, "model.repo=Llama", "at '/model/repo'"},
		{serving, "serving.engine=vllm,serving.engineOptions.x=1", "its flags go into serving.extraArgs"},
		{serving, "serving.twin.enabled=true,serving.twin.name=kvbooth", "the name of the first graph"},
		{serving, "serving.grove=false,serving.kaiQueue=booth", "need Grove"},
		{
			serving, "serving.nodes=2",
			"serving.nodes is 2: allowed is a number by which serving.tensorParallel, 1, can be divided",
		},
		{gateway, "loadgen.secrets.followup=key", "set loadgen.config.followup.url"},
		{gateway, "loadgen.secrets.corpus=key", "set loadgen.config.corpus.s3.endpoint and loadgen.config.corpus.s3.bucket"},

		{gateway, "loadgen.config.token_file=/tmp/none", "loadgen.config.token_file is the chart's"},
		{gateway, "loadgen.config.listen=0.0.0.0:1", "loadgen.config.listen is the chart's"},
		{gateway, "loadgen.config.members.count=4", "members are those of the values below members"},
		{gateway, nats, "set members.nats.existingSecret"},
		{gateway, nats + ",members.nats.existingSecret=x", "a token goes through TLS only"},
		{gateway, "members.replicas=2,members.nats.nkeyKey=seed", "the chart's own asks for a token"},
		{gateway, "members.replicas=2,members.nats.persistence.size=3Gi", "4Gi or more"},
		{gateway, "members.replicas=2,loadgen.enabled=false,grafana.enabled=false", "set members.nats.url"},
		{gateway, "grafana.env.GF_AUTH_ANONYMOUS_ORG_ROLE=Editor", "set grafana.anonymousViewer"},
		{gateway, "grafana.env.GF_AUTH_ANONYMOUS_ENABLED=true", "set grafana.anonymousViewer"},
		{gateway, "grafana.loadgenUrl=http://loadgen.example.com", "set loadgen.token.existingSecret"},
		{
			gateway, "gateway.exposeTarget=true,serving.name=,loadgen.config.target.url=http://x",
			"set serving.name or serving.create",
		},
		{gateway, "gateway.className=", "gateway.parentRef.name"},
		{gateway, "prometheus.create=true,prometheus.url=http://x", "leave out the URL"},
		{gateway, "grafana.existing.enabled=true", "set grafana.enabled to false"},
		{gateway, "loadgen.enabled=false", "Grafana has no load generator"},
		{gateway, "loadgen.secretEnv[0].name=LOADGEN_TOKEN", "at '/loadgen/secretEnv/0/name'"},
		{gateway, "prometheus.image.tag=latest", "at '/prometheus/image/tag'"},
		{gateway, "loadgen.resources.limits.memory=null", "at '/loadgen/resources/limits': missing property 'memory'"},
		{gateway, "grafana.admin.passwordKey=", "at '/grafana/admin/passwordKey'"},
		{gateway, "gateway.tls.certificateRefs[0].namespace=certs", "at '/gateway/tls/certificateRefs/0'"},
		{gateway, "loadgen.files.loadgen\\.yaml=x", "loadgen.files has loadgen.yaml, which is made of loadgen.config"},
		{gateway, "monitoring.dcgm.namespace=", "at '/monitoring/dcgm/namespace'"},
		{gateway, "prometheus.interval=often", "at '/prometheus/interval'"},
		{gateway, "loadgen.goMemLimit=400MB", "at '/loadgen/goMemLimit'"},
		{gateway, "networkPolicy.clientNamespaces={Not A Namespace}", "at '/networkPolicy/clientNamespaces/0'"},
	} {
		set := slices.Clone(c.on)
		if c.set != "" {
			set = append(set, strings.Split(c.set, ",")...)
		}
		_, _, err := helm.Render(t.Context(), Options{Set: set})
		assert.ErrorContains(t, err, c.says, c.set)
	}
	old := []string{"nvidia.com/v1alpha1", "nvidia.com/v1alpha1/DynamoGraphDeployment"}
	_, _, err := helm.Render(t.Context(), Options{Set: serving, APIVersions: old})
	require.ErrorContains(t, err, "as nvidia.com/v1alpha1 only: install Dynamo's platform 1.2 or later")
}
