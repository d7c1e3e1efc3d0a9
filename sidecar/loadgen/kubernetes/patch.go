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
	if w.restart != "" {
		ops = append(ops, operation{
			Op: "add", Path: "/spec/restart",
			Value: map[string]any{"id": w.restart, "strategy": map[string]string{"type": "Parallel"}},
		})
	}
	if w.nonce != "" {
		ops = append(ops, setVariable(g.Spec.Env, "/spec/env", nonceVariable, w.nonce)...)
	}
	return ops
}

// setMode writes the mode where it stands, and where it stands nowhere, into the graph's
// environment, which makes the workers begin anew, too. Where the frontend alone shall, it
// goes into the frontend's own.
func (g *graph) setMode(value string, frontendAlone bool) []operation {
	if !frontendAlone && !g.modeIsOwn() {
		return setVariable(g.Spec.Env, "/spec/env", routerMode, value)
	}
	_, i := g.frontend()
	path, ops := g.container(i)
	return append(ops, setVariable(g.own(), path+"/env", routerMode, value)...)
}

// modeIsOwn says whether the mode stands in the frontend's own environment, which counts more
// than the graph's.
func (g *graph) modeIsOwn() bool {
	_, i := valueOf(g.own(), routerMode)
	return i >= 0
}

func (g *graph) setVariant(i int, v Variant) []operation {
	path, ops := g.container(i)
	c := g.Spec.Components[i]
	container := c.PodTemplate.Spec.Containers[c.main()]
	if v.Image != "" && v.Image != container.Image {
		ops = append(ops, operation{Op: "replace", Path: path + "/image", Value: v.Image})
	}
	if v.Args != nil && !slices.Equal(v.Args, container.Args) {
		ops = append(ops, operation{Op: "add", Path: path + "/args", Value: v.Args})
	}
	env := container.Env
	for _, e := range v.Env {
		if value, i := valueOf(env, e.Name); i < 0 || value != e.Value {
			ops = append(ops, setVariable(env, path+"/env", e.Name, e.Value)...)
			if i < 0 {
				env = append(slices.Clone(env), e)
			}
		}
	}
	return ops
}

// container is the path of a component's main container, with the tests that it is there.
func (g *graph) container(i int) (path string, tests []operation) {
	c := g.Spec.Components[i]
	of := fmt.Sprintf("/spec/components/%d", i)
	path = fmt.Sprintf("%s/podTemplate/spec/containers/%d", of, c.main())
	return path, []operation{
		{Op: "test", Path: of + "/name", Value: c.Name},
		{Op: "test", Path: path + "/name", Value: c.PodTemplate.Spec.Containers[c.main()].Name},
	}
}

// setVariable sets a variable of the environment at a path.
func setVariable(env []corev1.EnvVar, path, name, value string) []operation {
	_, i := valueOf(env, name)
	switch {
	case i >= 0:
		at := fmt.Sprintf("%s/%d", path, i)
		return []operation{
			{Op: "test", Path: at + "/name", Value: name},
			{Op: "replace", Path: at, Value: corev1.EnvVar{Name: name, Value: value}},
		}
	case len(env) == 0:
		return []operation{{Op: "add", Path: path, Value: []corev1.EnvVar{{Name: name, Value: value}}}}
	}
	return []operation{{Op: "add", Path: path + "/-", Value: corev1.EnvVar{Name: name, Value: value}}}
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
