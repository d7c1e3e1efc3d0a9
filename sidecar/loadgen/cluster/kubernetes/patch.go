package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kvbooth/sidecar/api"
)

// operation is an operation of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Variant configures the workers for a speculation. Its fields replace those of the main
// container of every component of type worker; empty fields change nothing.
type Variant struct {
	Image string          `json:"image,omitempty"`
	Args  []string        `json:"args,omitempty"`
	Env   []corev1.EnvVar `json:"env,omitempty"`
}

// Names lists what a variant sets. Variants with equal names can replace each other.
func (v Variant) Names() string {
	var all []string
	if v.Image != "" {
		all = append(all, "image")
	}
	if v.Args != nil {
		all = append(all, "args")
	}
	for _, e := range v.Env {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// matches reports whether a container runs a variant.
func (v Variant) matches(c corev1.Container) bool {
	if v.Image != "" && v.Image != c.Image || v.Args != nil && !slices.Equal(v.Args, c.Args) {
		return false
	}
	for _, e := range v.Env {
		if value, i := valueOf(c.Env, e.Name); i < 0 || value != e.Value {
			return false
		}
	}
	return true
}

// wanted is the state that a switch brings a graph to.
type wanted struct {
	mode    api.ModeState
	variant *Variant // nil where the driver has none
	restart string   // id of the restart to request; "" where none is needed
	nonce   string   // requests another generation without other changes
	// frontendAlone leaves the workers running where no variant changes
	frontendAlone bool
	note          note
	// old holds the pods that a restart replaces. It is nil where an earlier process requested
	// the restart; then note.Newest separates old pods from new ones.
	old map[types.UID]bool
}

// patch returns the operations that bring the graph to the wanted state. The generation and
// each place are tested before the change, so that the patch fails after a change by another
// client.
func (g *graph) patch(w wanted) []operation {
	ops := []operation{{Op: "test", Path: "/metadata/generation", Value: g.Generation}}
	ops = append(ops, g.annotate(w.note)...)
	if g.mode() != w.mode.Mode {
		ops = append(ops, g.setMode(g.spell(w.mode.Mode), w.frontendAlone)...)
	}
	if w.variant != nil {
		for i, c := range g.Spec.Components {
			if c.isWorker() && c.main() >= 0 {
				ops = append(ops, g.setVariant(i, *w.variant)...)
			}
		}
	}
	switch {
	case w.nonce != "":
		ops = append(ops, g.shared().set(nonceVariable, w.nonce)...)
	case w.restart != "" && g.version == v1alpha1: // v1alpha1 has no field for a restart
		ops = append(ops, g.shared().set(nonceVariable, w.restart)...)
	case w.restart != "":
		ops = append(ops, operation{
			Op: "add", Path: "/spec/restart",
			Value: map[string]any{"id": w.restart, "strategy": map[string]string{"type": "Parallel"}},
		})
	}
	return ops
}

// shared returns the environment of all components.
func (g *graph) shared() environment {
	if g.version == v1alpha1 {
		return environment{"/spec/envs", g.Spec.Env}
	}
	return environment{"/spec/env", g.Spec.Env}
}

// setMode writes the mode where it is set already. Otherwise it writes the graph's
// environment, which also restarts the workers, or with frontendAlone the frontend's own.
func (g *graph) setMode(value string, frontendAlone bool) []operation {
	if !frontendAlone && !g.modeIsOwn() {
		return g.shared().set(routerMode, value)
	}
	f, i := g.frontend()
	return append(g.testComponent(i), f.environmentOf(routerMode).set(routerMode, value)...)
}

// modeIsOwn reports whether the mode is set in the frontend's own environment, which
// overrides the graph's.
func (g *graph) modeIsOwn() bool {
	_, i := valueOf(g.frontendEnv(), routerMode)
	return i >= 0
}

func (g *graph) setVariant(i int, v Variant) []operation {
	c := g.Spec.Components[i]
	ops := g.testComponent(i)
	c.env = slices.Clone(c.env)
	container := c.PodTemplate.Spec.Containers[c.main()]
	if v.Image != "" && v.Image != container.Image {
		ops = append(ops, operation{Op: "replace", Path: c.path + "/image", Value: v.Image})
	}
	if v.Args != nil && !slices.Equal(v.Args, container.Args) {
		ops = append(ops, operation{Op: "add", Path: c.path + "/args", Value: v.Args})
	}
	for _, e := range v.Env {
		if value, i := valueOf(container.Env, e.Name); i >= 0 && value == e.Value {
			continue
		}
		env := c.environmentOf(e.Name)
		ops = append(ops, env.set(e.Name, e.Value)...)
		if _, i := valueOf(env.all, e.Name); i < 0 {
			last := &c.env[len(c.env)-1]
			last.all = append(slices.Clone(last.all), e)
		}
	}
	return ops
}

// testComponent tests that a component and its main container have the index at which they were read. In v1alpha1 they
// have none.
func (g *graph) testComponent(i int) []operation {
	c := g.Spec.Components[i]
	if g.version == v1alpha1 {
		return nil
	}
	return []operation{
		{Op: "test", Path: fmt.Sprintf("/spec/components/%d/name", i), Value: c.Name},
		{Op: "test", Path: c.path + "/name", Value: c.PodTemplate.Spec.Containers[c.main()].Name},
	}
}

// environmentOf returns the environment of a component that has a variable, or the one for new variables.
func (c component) environmentOf(name string) environment {
	for _, e := range c.env {
		if _, i := valueOf(e.all, name); i >= 0 {
			return e
		}
	}
	return c.env[len(c.env)-1]
}

// set returns the operations that set a variable.
func (e environment) set(name, value string) []operation {
	_, i := valueOf(e.all, name)
	switch {
	case i >= 0:
		path := fmt.Sprintf("%s/%d", e.path, i)
		return []operation{
			{Op: "test", Path: path + "/name", Value: name},
			{Op: "replace", Path: path, Value: corev1.EnvVar{Name: name, Value: value}},
		}
	case len(e.all) == 0:
		return []operation{{Op: "add", Path: e.path, Value: []corev1.EnvVar{{Name: name, Value: value}}}}
	}
	return []operation{{Op: "add", Path: e.path + "/-", Value: corev1.EnvVar{Name: name, Value: value}}}
}

var annotationPath = "/metadata/annotations/" + strings.ReplaceAll(switching, "/", "~1")

// annotate writes the note. A note that it replaces is tested.
func (g *graph) annotate(n note) []operation {
	text, _ := json.Marshal(n) // cannot fail: texts, times and numbers
	if len(g.Annotations) == 0 {
		return []operation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{switching: string(text)}}}
	}
	ops := []operation{{Op: "add", Path: annotationPath, Value: string(text)}}
	if before, ok := g.Annotations[switching]; ok {
		ops = append([]operation{{Op: "test", Path: annotationPath, Value: before}}, ops...)
	}
	return ops
}

// unannotate removes the note, unless it has changed.
func (g *graph) unannotate() []operation {
	return []operation{
		{Op: "test", Path: annotationPath, Value: g.Annotations[switching]},
		{Op: "remove", Path: annotationPath},
	}
}
