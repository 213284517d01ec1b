package main

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs, on machines without a zone database

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl: credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// The functions below are what the main functions of the upstream programs
// do, and the imports above are theirs.

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runAPIServer() int { return cli.Run(apiserver.NewAPIServerCommand()) }

func runControllerManager() int { return cli.Run(controllermanager.NewControllerManagerCommand()) }

func runScheduler() int { return cli.Run(scheduler.NewSchedulerCommand()) }

func runKubectl() int {
	// kubectl logs while it puts its commands together, before it has parsed
	// its flags; without this -v would not reach those lines.
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		kubectlutil.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
		return 1
	}
	return 0
}
