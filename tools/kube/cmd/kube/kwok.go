package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	nodes "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pods "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
	"sigs.k8s.io/yaml"
)

// kwok is KWOK's own program: its logger and its configuration read their flags before its command does.
func kwok() int {
	// The other programs' packages have registered flags for the process, among them a --version with a value, which
	// KWOK's command would take for its own.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	early := pflag.NewFlagSet("early", pflag.ContinueOnError)
	early.ParseErrorsAllowlist.UnknownFlags = true
	early.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), early)
	ctx, err := config.InitFlags(ctx, early)
	if err == nil {
		command := cmd.NewCommand(ctx)
		command.PersistentFlags().AddFlagSet(early)
		err = command.ExecuteContext(ctx)
	}
	if err != nil {
		logger.Error("kwok", "err", err)
		return 1
	}
	return 0
}

const (
	// startAnnotation of a pod says how long it takes to be ready, as a Go duration.
	startAnnotation = "kvbooth/start"
	// brokenImage finds the images of a pod that cannot be pulled.
	brokenImage = `.spec.containers.[].image | select(contains("broken"))`
)

// stages prints KWOK's configuration: the stages that its module brings, with two differences. A pod becomes ready
// after the time that its annotation names, and one whose image has "broken" in its name never does: it waits as on a
// node that cannot pull the image.
func stages() int {
	ready, err := changed(pods.DefaultPodReady)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube stages:", err)
		return 1
	}
	all := []string{
		nodes.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease, ready, pods.DefaultPodComplete,
		pods.DefaultPodDelete,
		waiting("pod-image-fails", "ErrImagePull", "- {key: .status.containerStatuses, operator: DoesNotExist}", 50),
		waiting("pod-image-waits", "ImagePullBackOff",
			"- {key: '.status.containerStatuses.[].state.waiting.reason', operator: In, values: [ErrImagePull]}", 500),
	}
	fmt.Println(strings.Join(all, "\n---\n"))
	return 0
}

// changed gives the stage that makes pods ready its delay, and keeps broken ones from it.
func changed(stage string) (string, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(stage), &object); err != nil {
		return "", err
	}
	spec, _ := object["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	matches, ok := selector["matchExpressions"].([]any)
	if !ok {
		return "", fmt.Errorf("KWOK's stage %v selects by no expressions", object["metadata"])
	}
	selector["matchExpressions"] = append(matches, map[string]any{"key": brokenImage, "operator": "DoesNotExist"})
	spec["delay"] = map[string]any{"durationFrom": map[string]any{
		"expressionFrom": fmt.Sprintf(".metadata.annotations[%q]", startAnnotation),
	}}
	out, err := yaml.Marshal(object)
	return string(out), err
}

// waiting is a stage that has the containers of a broken pod wait for a reason, after some milliseconds.
func waiting(name, reason, when string, after int) string {
	return fmt.Sprintf(`apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: %s}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
    - {key: '%s', operator: Exists}
    %s
  delay: {durationMilliseconds: %d}
  next:
    statusTemplate: |
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        imageID: ""
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        state:
          waiting:
            reason: %s
            message: {{ printf "cannot pull image %%q" .image | Quote }}
      {{ end }}`, name, brokenImage, when, after, reason)
}
