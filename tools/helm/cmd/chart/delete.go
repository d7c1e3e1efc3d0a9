package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type deleteCommand struct {
	release
	cluster
	Yes     bool          `help:"Delete it. Without this, nothing is changed."`
	Timeout time.Duration `help:"How long to wait until everything is gone." default:"10m"`
}

// Run says what goes and what stays, and deletes where it was told to.
func (c *deleteCommand) Run(ctx context.Context, out io.Writer) error {
	con, current, all, err := connectInstalled(c.cluster, c.release)
	if err != nil {
		return err
	}
	defer con.close()
	going, staying, err := con.fate(ctx, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Release %s in namespace %s, context %s, revision %d\n", con.Release, con.Namespace, con.context, current.Version)
	if freed := gpus(all); freed > 0 {
		fmt.Fprintf(out, "GPUs: %d are freed\n", freed)
	}
	section(out, "Deletes", going)
	section(out, "Leaves in the cluster", append(staying, "Namespace "+con.Namespace))
	if !c.Yes {
		fmt.Fprintln(out, "Nothing was deleted: this was the plan.")
		return nil
	}
	uninstall := action.NewUninstall(con.helm)
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DeletionPropagation = kube.StatusWatcherStrategy, c.Timeout, "foreground"
	if _, err := uninstall.Run(con.Release); err != nil {
		return con.inWords(err)
	}
	fmt.Fprintln(out, "The release is deleted.")
	return nil
}

var claims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// fate says of a release's objects, and of what they made, what goes and what stays when it is deleted.
func (c *connection) fate(ctx context.Context, all []*unstructured.Unstructured) (going, staying []string, err error) {
	for _, object := range all {
		resource, err := c.resource(object)
		if err != nil {
			going = append(going, c.name(object)+" (its kind is no longer served)")
			continue
		}
		live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, nil, err
		case kept(object):
			staying = append(staying, c.name(object)+sized(live))
		case object.GetKind() == graphKind:
			going = append(going, c.name(object)+", with its pods")
		default:
			going = append(going, c.name(object)+sized(live))
		}
		if live != nil && live.GetKind() == "StatefulSet" {
			claimed, err := c.claimed(ctx, live)
			if err != nil {
				return nil, nil, err
			}
			if policy, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); policy == "Delete" {
				going = append(going, claimed...)
			} else {
				staying = append(staying, claimed...)
			}
		}
	}
	return going, staying, nil
}

// claimed are the claims that a StatefulSet has made for its pods.
func (c *connection) claimed(ctx context.Context, set *unstructured.Unstructured) (names []string, err error) {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	if len(templates) == 0 {
		return nil, nil
	}
	found, err := c.objects.Resource(claims).Namespace(set.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, each := range templates {
		template, _ := each.(map[string]any)
		prefix, _, _ := unstructured.NestedString(template, "metadata", "name")
		for _, claim := range found.Items {
			ordinal, ok := strings.CutPrefix(claim.GetName(), prefix+"-"+set.GetName()+"-")
			if ok && strings.Trim(ordinal, "0123456789") == "" {
				names = append(names, c.name(&claim)+sized(&claim)+", made by StatefulSet "+set.GetName())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// sized is the size of a claim or volume.
func sized(object *unstructured.Unstructured) string {
	path := []string{"spec", "resources", "requests", "storage"}
	switch object.GetKind() {
	case "PersistentVolumeClaim":
	case "PersistentVolume":
		path = []string{"spec", "capacity", "storage"}
	default:
		return ""
	}
	size, _, _ := unstructured.NestedString(object.Object, path...)
	if policy, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeReclaimPolicy"); policy == "Retain" {
		size += "; what lies on it stays"
	}
	return " (" + size + ")"
}
