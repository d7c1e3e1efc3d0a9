package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// Features returns what the object showed last of the features that the deployment uses; nil before the first reading.
// A feature that the object does not determine is left out.
func (d *Driver) Features() []api.Feature {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.features
}

// features reads them from the components' types, arguments and variables, and from the annotations.
func (g *graph) features() []api.Feature {
	all := []api.Feature{g.planner()}
	disaggregated, known := g.disaggregated()
	if known {
		all = append(all, disaggregated)
	}
	split := known && disaggregated.InUse
	for _, transfer := range []struct {
		name     string
		signs    []string // words in the arguments that show the feature
		env      string   // beginning of a variable that shows it
		standard bool     // workers without a sign may also use it
	}{
		{api.FeatureKVBM, []string{"kvbm", "dynamoconnector"}, "DYN_KVBM_", false},
		{api.FeatureNIXL, []string{"nixl"}, "", split || g.version == v1alpha1},
	} {
		if f, ok := g.transfers(transfer.name, transfer.signs, transfer.env, transfer.standard); ok {
			all = append(all, f)
		}
	}
	return append(all, g.scheduling()...)
}

// scheduling reads the annotations. Without an annotation the operator's default applies, which is unknown.
func (g *graph) scheduling() (all []api.Feature) {
	if value := g.Annotations[groveAnnotation]; value != "" {
		has := fmt.Sprintf("the annotation %s: %s", groveAnnotation, value)
		all = append(all, g.feature(api.FeatureGrove, strings.EqualFold(value, "true"), has))
	}
	if value := g.Annotations[queueAnnotation]; value != "" {
		all = append(all, g.feature(api.FeatureKAI, true, fmt.Sprintf("the annotation %s: %s", queueAnnotation, value)))
	}
	return all
}

// feature makes a feature whose evidence is that the object has something.
func (g *graph) feature(name string, inUse bool, has string) api.Feature {
	return api.Feature{Name: name, InUse: inUse, Evidence: fmt.Sprintf("DynamoGraphDeployment %s has %s.", g.id(), has)}
}

func (g *graph) planner() api.Feature {
	for _, c := range g.Spec.Components {
		if strings.EqualFold(c.Type, "planner") && c.count() > 0 {
			return g.feature(api.FeaturePlanner, true, "the component "+c.Name+" of type planner")
		}
	}
	return g.feature(api.FeaturePlanner, false, "no component of type planner")
}

// disaggregated reports whether workers are split by role. It is known for a graph with workers.
func (g *graph) disaggregated() (f api.Feature, known bool) {
	for _, c := range g.Spec.Components {
		if !c.isWorker() {
			continue
		}
		known = true
		text := c.arguments()
		for _, role := range []string{"prefill", "decode"} {
			if strings.EqualFold(c.Type, role) {
				return g.feature(api.FeatureDisaggregated, true, "the component "+c.Name+" of type "+role), true
			}
			if strings.Contains(text, "--disaggregation-mode "+role) || strings.Contains(text, "--is-"+role+"-worker") {
				return g.feature(api.FeatureDisaggregated, true, "the component "+c.Name+" for "+role), true
			}
		}
	}
	return g.feature(api.FeatureDisaggregated, false, "no workers for prefill or decode alone"), known
}

// transfers looks for signs of a library that moves blocks. The result is unknown where there are no workers, where
// their arguments are in a file, or where standard is set and no worker has a sign.
func (g *graph) transfers(name string, signs []string, env string, standard bool) (f api.Feature, known bool) {
	workers := 0
	for _, c := range g.Spec.Components {
		if !c.isWorker() || c.main() < 0 {
			continue
		}
		workers++
		text := c.arguments()
		for _, sign := range signs {
			if strings.Contains(text, sign) {
				return g.feature(name, true, fmt.Sprintf("%q in the arguments of the component %s", sign, c.Name)), true
			}
		}
		for _, v := range slices.Concat(g.Spec.Env, c.PodTemplate.Spec.Containers[c.main()].Env) {
			prefixed := env != "" && strings.HasPrefix(v.Name, env)
			if prefixed || v.Name == "DYN_CONNECTOR" && slices.Contains(signs, strings.ToLower(strings.TrimSpace(v.Value))) {
				return g.feature(name, true, "the variable "+v.Name+" of the component "+c.Name), true
			}
		}
		standard = standard || strings.Contains(text, "--extra-engine-args") || strings.Contains(text, "--config ")
	}
	return g.feature(name, false, "no argument and no variable for it"), workers > 0 && !standard
}

// arguments returns the words of the main container in lower case, with a blank between a flag and its value.
func (c component) arguments() string {
	i := c.main()
	if i < 0 {
		return ""
	}
	main := c.PodTemplate.Spec.Containers[i]
	words := strings.Fields(strings.Join(slices.Concat(main.Command, main.Args), " "))
	for i, w := range words {
		if strings.HasPrefix(w, "--") {
			words[i] = strings.Replace(w, "=", " ", 1)
		}
	}
	return strings.ToLower(strings.Join(words, " ")) + " "
}
