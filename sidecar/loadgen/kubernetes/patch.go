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

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Variant is how the workers run with a speculation: what it names replaces that of the main
// container of every component of type worker; what is empty stays.
type Variant struct {
	Image string          `json:"image,omitempty"`
	Args  []string        `json:"args,omitempty"`
	Env   []corev1.EnvVar `json:"env,omitempty"`
}

// Names are what a variant sets, as text: two with the same can take each other's place.
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

// is says whether a container runs a variant.
func (v Variant) is(c corev1.Container) bool {
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

// wanted is what a switch brings a graph to.
type wanted struct {
	mode    api.ModeState
	variant *Variant // nil where the driver has none
	restart string   // id of the restart to ask for; ""  where none is needed
	nonce   string   // another generation and nothing else
	note    note
	// old are the pods that a restart replaces; nil where a process before this one asked for
	// it, of which the note tells when the newest was created.
	old map[types.UID]bool
}

// patch gives the operations that bring the graph to what is wanted. Each place is tested
// before it is written, and the generation first of all: what somebody else has changed
// meanwhile makes the whole fail.
func (g *graph) patch(w wanted, frontendAlone bool) []operation {
	ops := []operation{{Op: "test", Path: "/metadata/generation", Value: g.Generation}}
	ops = append(ops, g.annotate(w.note)...)
	if g.mode() != w.mode.Mode {
		ops = append(ops, g.setMode(g.spell(w.mode.Mode), frontendAlone)...)
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
	case w.restart != "" && g.version == earlier: // where a restart cannot be asked for
		ops = append(ops, g.shared().set(nonceVariable, w.restart)...)
	case w.restart != "":
		ops = append(ops, operation{
			Op: "add", Path: "/spec/restart",
			Value: map[string]any{"id": w.restart, "strategy": map[string]string{"type": "Parallel"}},
		})
	}
	return ops
}

// shared is the environment of all components.
func (g *graph) shared() environment {
	if g.version == earlier {
		return environment{"/spec/envs", g.Spec.Env}
	}
	return environment{"/spec/env", g.Spec.Env}
}

// setMode writes the mode where it stands, and where it stands nowhere, into the graph's
// environment, which makes the workers begin anew, too. Where the frontend alone shall, it
// goes into the frontend's own.
func (g *graph) setMode(value string, frontendAlone bool) []operation {
	if !frontendAlone && !g.modeIsOwn() {
		return g.shared().set(routerMode, value)
	}
	f, i := g.frontend()
	return append(g.isThere(i), f.place(routerMode).set(routerMode, value)...)
}

// modeIsOwn says whether the mode stands in the frontend's own environment, which counts more
// than the graph's.
func (g *graph) modeIsOwn() bool {
	_, i := valueOf(g.own(), routerMode)
	return i >= 0
}

func (g *graph) setVariant(i int, v Variant) []operation {
	c, ops := g.Spec.Components[i], g.isThere(i)
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
		of := c.place(e.Name)
		ops = append(ops, of.set(e.Name, e.Value)...)
		if _, i := valueOf(of.all, e.Name); i < 0 {
			last := &c.env[len(c.env)-1]
			last.all = append(slices.Clone(last.all), e)
		}
	}
	return ops
}

// isThere tests that a component and its main container are where they were read. Those of v1alpha1 have no place that
// could change.
func (g *graph) isThere(i int) []operation {
	c := g.Spec.Components[i]
	if g.version == earlier {
		return nil
	}
	return []operation{
		{Op: "test", Path: fmt.Sprintf("/spec/components/%d/name", i), Value: c.Name},
		{Op: "test", Path: c.path + "/name", Value: c.PodTemplate.Spec.Containers[c.main()].Name},
	}
}

// place is the environment of a component that has a variable, and the one for new variables where none has it.
func (c component) place(name string) environment {
	for _, e := range c.env {
		if _, i := valueOf(e.all, name); i >= 0 {
			return e
		}
	}
	return c.env[len(c.env)-1]
}

// set sets a variable.
func (e environment) set(name, value string) []operation {
	_, i := valueOf(e.all, name)
	switch {
	case i >= 0:
		at := fmt.Sprintf("%s/%d", e.path, i)
		return []operation{
			{Op: "test", Path: at + "/name", Value: name},
			{Op: "replace", Path: at, Value: corev1.EnvVar{Name: name, Value: value}},
		}
	case len(e.all) == 0:
		return []operation{{Op: "add", Path: e.path, Value: []corev1.EnvVar{{Name: name, Value: value}}}}
	}
	return []operation{{Op: "add", Path: e.path + "/-", Value: corev1.EnvVar{Name: name, Value: value}}}
}

var annotationPath = "/metadata/annotations/" + strings.ReplaceAll(switching, "/", "~1")

// annotate writes the note. The one that is replaced is tested.
func (g *graph) annotate(n note) []operation {
	text, _ := json.Marshal(n) // texts, times and numbers
	if len(g.Annotations) == 0 {
		return []operation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{switching: string(text)}}}
	}
	ops := []operation{{Op: "add", Path: annotationPath, Value: string(text)}}
	if before, ok := g.Annotations[switching]; ok {
		ops = append([]operation{{Op: "test", Path: annotationPath, Value: before}}, ops...)
	}
	return ops
}

// unannotate removes the note, if it is still that one.
func (g *graph) unannotate() []operation {
	return []operation{
		{Op: "test", Path: annotationPath, Value: g.Annotations[switching]},
		{Op: "remove", Path: annotationPath},
	}
}
