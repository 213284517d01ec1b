package main

import "context"

// serve says how to use the cluster, and waits.
func (s *stage) serve(ctx context.Context) error {
	s.screen.sayf(`
Ambit is running. In another terminal, in this folder:

export KUBECONFIG=%s
export PATH=$PWD/bin/k8s:$PATH
kubectl apply -f test/demo/1-scope.yaml -f test/demo/1-operators.yaml
kubectl create namespace cloudpak1
kubectl apply -f test/demo/3-scope.yaml
kubectl get nss -n ibm-common-services
kubectl get configmap namespace-scope -n ibm-common-services -o jsonpath='{.data}'
kubectl get roles,rolebindings -n cloudpak1

The manager's log is %s. Ctrl-C stops everything.`, s.kubeconfig, s.managerLog())

	<-ctx.Done()

	return context.Cause(ctx)
}
