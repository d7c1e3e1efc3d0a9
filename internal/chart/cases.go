package chart

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Case is a configuration of the chart that tests render.
type Case struct {
	Name     string
	Options  Options
	External []string // existing objects that the values name, as "Kind name"
	Graphs   []string // existing DynamoGraphDeployments, as "namespace/name"
}

// complete lists the values files that render alone, with the objects that they require. The other values files need
// serving.create.
var complete = map[string]Case{
	"values-doks.yaml":            {External: []string{"Secret kvbooth-tls"}},
	"values-existing-dynamo.yaml": {Graphs: []string{"dynamo/my-graph"}},
	"values-generic.yaml":         {External: []string{"Gateway gateway"}},
}

// claim is what a Dynamo needs whose model the chart does not make.
var claim = []string{"PersistentVolumeClaim model-nfs-pvc"}

// job are the values of a Job and nothing else.
var job = []string{
	"loadgen.enabled=false", "grafana.enabled=false", "doctor.enabled=false", "run.enabled=true",
	"run.target=https://llm.example.com", "run.args={--requests=100,--fail-if=error_rate>1%}",
	"run.outputs={run.json,run.html}", "run.env.LOADGEN_CONCURRENCY=8",
}

// Cases returns the configurations to test: the defaults with an existing Dynamo and with one that the chart creates,
// every values file of the chart, and all options that can be enabled together. root is the module's root.
func Cases(root string) ([]Case, error) {
	made := []string{"serving.create=true"}
	cases := []Case{
		{Name: "default", Options: Options{Set: []string{"serving.name=booth"}}, Graphs: []string{"kvbooth/booth"}},
		{Name: "dynamo", Options: Options{Set: made}, External: claim},
		{
			Name: "eagle3 on H100", External: claim,
			Options: Options{Values: []string{"values-h100-tp4.yaml", "values-eagle3.yaml"}, Set: made},
		},
		{Name: "everything", Options: Options{Set: []string{
			"serving.create=true", "serving.twin.enabled=true", "serving.variants={off,draft}", "model.create=true",
			"model.volume.nfs.server=nfs.example.com", "model.volume.nfs.path=/models",
			"gateway.enabled=true", "gateway.className=x", "gateway.host=booth.example.com",
			"gateway.exposeTarget=true", "gateway.tls.certificateRefs[0].name=booth-tls",
			"monitoring.loadgen.enabled=true", "monitoring.dynamo.enabled=true", "monitoring.dcgm.enabled=true",
			"monitoring.rules.enabled=true", "prometheus.create=true", "members.replicas=4",
			"grafana.persistence.enabled=true", "image.registry=registry.example.com/team", "image.pullSecrets={pull}",
		}}, External: []string{"Secret pull", "Secret booth-tls"}},
		{Name: "the recorded demo", Options: Options{Values: []string{"values-doks.yaml"}, Set: []string{
			"loadgen.config.followup.url=https://inference.do-ai.run",
			"loadgen.config.followup.model=llama3-8b-instruct", "loadgen.secrets.followup=serverless-inference",
			"loadgen.config.corpus.s3.endpoint=https://nyc3.digitaloceanspaces.com",
			"loadgen.config.corpus.s3.bucket=booth-corpus", "loadgen.secrets.corpus=spaces",
			"serving.kaiQueue=booth", "serving.tensorParallel=16", "serving.nodes=2", "members.replicas=2",
		}}, External: []string{"Secret kvbooth-tls", "Secret serverless-inference", "Secret spaces"}},
		{Name: "existing Grafana", Options: Options{Set: []string{
			"serving.name=booth", "serving.namespace=dynamo", "grafana.enabled=false", "grafana.existing.enabled=true",
			"grafana.existing.app=true", "grafana.existing.namespace=monitoring",
			"prometheus.url=http://prometheus-operated.monitoring.svc:9090",
		}}, Graphs: []string{"dynamo/booth"}},
		{Name: "existing NATS", Options: Options{Set: []string{
			"serving.name=booth", "members.replicas=8", "members.nats.url=nats://nats.dynamo-system.svc:4222",
			"members.nats.existingSecret=nats-nkey", "members.nats.nkeyKey=seed",
			"monitoring.loadgen.enabled=true", "loadgen.secretEnv[0].name=LOADGEN_METRICS_TOKEN",
			"loadgen.secretEnv[0].secret=scrapes", "loadgen.secretEnv[0].key=token",
		}}, Graphs: []string{"kvbooth/booth"}, External: []string{"Secret nats-nkey", "Secret scrapes"}},
		{Name: "members alone", Options: Options{Set: []string{
			"loadgen.enabled=false", "grafana.enabled=false", "doctor.enabled=false",
			"loadgen.config.target.url=https://llm.example.com", "members.replicas=2", "members.fleet=booth",
			"members.nats.url=tls://nats.example.com:4222", "members.nats.existingSecret=nats-token",
		}}, External: []string{"Secret nats-token"}},
		{Name: "a Job alone", Options: Options{Set: job}},
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(Dir), "values-*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		file := filepath.Base(path)
		name := strings.TrimSuffix(strings.TrimPrefix(file, "values-"), ".yaml")
		c, ok := complete[file]
		if !ok {
			c = Case{Options: Options{Set: made}, External: claim}
		}
		c.Name, c.Options.Values = name, []string{file}
		cases = append(cases, c)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no values files", Dir)
	}
	return cases, nil
}
