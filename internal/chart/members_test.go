//go:build chart

package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without members nothing of them is there; those that run elsewhere need the coordinator's way to the server alone.
func TestMembersAreAskedFor(t *testing.T) {
	elsewhere := []string{
		"serving.name=booth", "members.nats.url=nats://nats.dynamo.svc:4222",
		"members.nats.existingSecret=key", "members.nats.nkeyKey=seed", "members.nats.caKey=ca",
	}
	without := []string{"serving.name=booth", "prometheus.create=true", "monitoring.loadgen.enabled=true"}
	for _, set := range [][]string{without, elsewhere} {
		objects, _, err := helm.Render(t.Context(), Options{Set: set, APIVersions: served})
		require.NoError(t, err)
		for _, object := range objects {
			require.NotContains(t, []string{"member", "nats"}, object.GetLabels()["app.kubernetes.io/component"], title(object))
		}
		text := configMap(t, objects, "kvbooth-loadgen")["loadgen.yaml"]
		if len(set) == len(without) {
			require.NotContains(t, text, "members:")
			continue
		}
		require.Contains(t, text, "nkey_file: /run/secrets/nats/nkey\n")
		require.Contains(t, text, "ca_file: /run/secrets/nats/ca.crt\n")
		namespaces, _ := egress(t, objects, "kvbooth-loadgen")
		require.Equal(t, []string{"dynamo", "kvbooth"}, namespaces)
	}
}

// Members get the target's keys and no other secret of the load generator, and reach less than it does; whatever the
// names are, the fleet's is one that it takes.
func TestMembersGetWhatTheyNeed(t *testing.T) {
	o := Options{Release: strings.Repeat("long-", 9) + "name", Set: []string{
		"loadgen.config.target.url=https://llm.example.com:8443",
		"loadgen.config.corpus.s3.endpoint=https://texts.example.com:9000", "loadgen.config.corpus.s3.bucket=texts",
		"members.replicas=2",
	}}
	for i, name := range []string{
		"TARGET_API_KEY", "FOLLOWUP_API_KEY", "CORPUS_S3_ACCESS_KEY", "CORPUS_S3_SECRET_KEY",
		"METRICS_TOKEN",
	} {
		o.Set = append(o.Set, fmt.Sprintf("loadgen.secretEnv[%d].name=LOADGEN_%s,"+
			"loadgen.secretEnv[%[1]d].secret=keys,loadgen.secretEnv[%[1]d].key=%[2]s", i, name))
	}
	objects, _, err := helm.Render(t.Context(), o)
	require.NoError(t, err)
	pods, err := Pods(objects, "kvbooth")
	require.NoError(t, err)
	i := slices.IndexFunc(pods, func(p Pod) bool { return strings.HasSuffix(p.Owner, "-member") })
	require.GreaterOrEqual(t, i, 0)
	member := pods[i].Template.Spec.Containers[0]
	var names []string
	for _, env := range member.Env {
		names = append(names, env.Name)
	}
	require.Equal(t, []string{
		"LOADGEN_MEMBERS_NAME", "LOADGEN_TARGET_API_KEY", "LOADGEN_FOLLOWUP_API_KEY",
		"LOADGEN_METRICS_TOKEN",
	}, names)
	require.Contains(t, member.Args, "--members-fleet=kvbooth-long-long-long-long-long")
	name := strings.TrimPrefix(pods[i].Owner, "StatefulSet ")
	require.Nil(t, find(objects, "Secret", name, "kvbooth"), "the load generator's token is theirs, too")
	namespaces, ports := egress(t, objects, name)
	require.Equal(t, []string{"kvbooth"}, namespaces)
	require.Equal(t, []string{"8443"}, ports)
	namespaces, ports = egress(t, objects, strings.TrimSuffix(name, "member")+"nats")
	require.Empty(t, namespaces)
	require.Empty(t, ports)
}
