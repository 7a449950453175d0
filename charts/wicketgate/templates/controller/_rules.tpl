{{/* What the controller asks of its own namespace: who leads. */}}
{{- define "wicketgate.electionRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}

{{/* What the controller asks of the namespaces in which it acts. */}}
{{- define "wicketgate.controllerRules" -}}
{{- $groups := list "gateway.wicketgate.dev" }}
{{- if .Values.controller.awsGroup }}
{{- $groups = append $groups "inference.sagemaker.aws.amazon.com" }}
{{- end -}}
- apiGroups: [{{ join ", " $groups }}]
  resources: [inferencegatewayconfigs]
  verbs: [list, watch]
- apiGroups: [{{ join ", " $groups }}]
  resources: [inferencegatewayconfigs/status]
  verbs: [patch]
# What a gateway is made of. Nothing is deleted: it belongs to its resource and goes with it.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch]
# Pods for statuses; both because gateways may, and nobody can give a right that he does not have.
- apiGroups: [""]
  resources: [pods, configmaps]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
