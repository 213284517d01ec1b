package cli_test

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// injector draws how a scope injects into workloads.
func (w *drawn) injector() map[string]any {
	out := map[string]any{"enable": !w.oneIn(5)}

	switch w.random.IntN(7) {
	case 0:
		out["variable"] = "NAMESPACES"
	case 1:
		out["variable"], out["mountPath"] = "", "/etc/ambit"
	case 2:
		out["mountPath"] = "/etc/watch-list"
	case 3:
		out["containers"], out["arguments"] = list([]string{"operator"}), list([]string{"--watch=$(WATCH_NAMESPACE)"})
	case 4:
		out["containers"] = list([]string{one(w, "operator", "nosuch")})
	}

	w.choose(3, out, "conflicts", one(w, "Replace", "Report"))

	return out
}

// drawWorkload makes an operator, or changes it.
func (w *drawn) drawWorkload() *move {
	name := one(w, "op-0", "op-1", "op-3")
	d := w.reader(name)
	spec, _ := d["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	meta, _ := template["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)

	w.drawContainer(pod)

	switch w.random.IntN(5) {
	case 0:
		delete(labels, "intent")
	case 1:
		spec["replicas"] = 0
	case 2:
		d.annotate("ambit.dev/restart", "disabled")
	}

	return &move{name: "an operator", objects: []manifest{serviceAccount(w.ops, name), w.ofKind(d, name)}}
}

// drawContainer changes how an operator learns where it works.
func (w *drawn) drawContainer(pod map[string]any) {
	operator := map[string]any{"name": "operator", "image": "registry.example.com/operator:" + one(w, "1", "2")}

	switch w.random.IntN(10) {
	case 0, 1:
	case 2:
		operator["env"] = []any{map[string]any{"name": "WATCH_NAMESPACE", "value": one(w, "", "default")}}
	case 3:
		operator["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": defaultList}}}
	case 4:
		operator["args"] = list([]string{"--quiet"})
	case 5:
		operator["volumeMounts"] = []any{map[string]any{"name": "list", "mountPath": one(w, "/etc/ambit", "/etc/other")}}
		pod["volumes"] = []any{map[string]any{"name": "list", "configMap": map[string]any{"name": one(w, defaultList, "other-list")}}}
	case 6:
		pod["initContainers"] = []any{map[string]any{
			"name": "waits", "image": "registry.example.com/waits:1",
			"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": one(w, defaultList, "other-list")}}},
		}}
	default:
		return // It reads the list.
	}

	pod["containers"] = []any{operator}
}

// ofKind makes a workload of another kind of a Deployment, now and then.
func (w *drawn) ofKind(d manifest, account string) manifest {
	kind := one(w, "Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob")
	if kind == "Deployment" {
		return d
	}

	meta, spec := d["metadata"].(map[string]any), d["spec"].(map[string]any)
	out := object("apps/v1", kind, w.ops, account+"-"+kind[:1], manifest{"spec": spec})
	out["metadata"].(map[string]any)["name"] = map[string]string{"StatefulSet": "set", "DaemonSet": "daemon", "CronJob": "job"}[kind]

	if a := meta["annotations"]; a != nil {
		out["metadata"].(map[string]any)["annotations"] = a
	}

	delete(spec, "strategy")

	selected := map[string]any{"name": out["metadata"].(map[string]any)["name"]}
	template := spec["template"].(map[string]any)
	labels := template["metadata"].(map[string]any)["labels"].(map[string]any)
	labels["name"] = selected["name"]

	switch kind {
	case "StatefulSet":
		spec["serviceName"] = "none"
	case "DaemonSet":
		delete(spec, "replicas")
	case "CronJob":
		template["spec"].(map[string]any)["restartPolicy"] = "Never"
		out["apiVersion"] = "batch/v1"
		job := map[string]any{"spec": map[string]any{"template": template}}
		out["spec"] = map[string]any{"schedule": "0 0 1 1 *", "jobTemplate": job}

		return out
	}

	spec["selector"] = map[string]any{"matchLabels": selected}

	return out
}

// setsRun complains until the pods of StatefulSets and DaemonSets are those that are asked for.
func (w *drawn) setsRun(namespace string) error {
	var (
		sets    appsv1.StatefulSetList
		daemons appsv1.DaemonSetList
	)

	if err := errors.Join(w.Client.List(w.Context(), &sets, client.InNamespace(namespace)),
		w.Client.List(w.Context(), &daemons, client.InNamespace(namespace))); err != nil {
		return err
	}

	var errs []error

	for i := range sets.Items {
		s := &sets.Items[i]
		if st := &s.Status; st.ObservedGeneration != s.Generation || st.CurrentRevision != st.UpdateRevision && *s.Spec.Replicas > 0 ||
			st.ReadyReplicas != *s.Spec.Replicas || st.Replicas != *s.Spec.Replicas {
			errs = append(errs, fmt.Errorf("StatefulSet %s has %+v", s.Name, s.Status))
		}
	}

	for i := range daemons.Items {
		d := &daemons.Items[i]
		if st := &d.Status; st.ObservedGeneration != d.Generation || st.NumberReady != st.DesiredNumberScheduled ||
			st.UpdatedNumberScheduled != st.DesiredNumberScheduled {
			errs = append(errs, fmt.Errorf("DaemonSet %s has %+v", d.Name, d.Status))
		}
	}

	return errors.Join(errs...)
}
