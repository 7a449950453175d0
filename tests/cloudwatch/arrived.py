"""Waits until a CloudWatch (address: first argument) has what a gateway and a router under load report."""

import datetime
import sys
import time

import boto3

NAMESPACE = "Wicketgate"
# Dimensions, and by name what values are between, once there was load.
WANTED = [
    (
        {"Cluster": "test"},
        {
        "ReadyEndpoints": (2, 2),
        "UnreadyEndpoints": (0, 0),
        "KvUsage": (0, 100),
        "RequestRate": (0.01, 1e6),
        "ErrorRate": (0, 100),
        "ShedRate": (0, 100),
        "TimeToFirstTokenP99": (1e-4, 100),
        "DurationP99": (1e-4, 100),
        "InputTokenRate": (1, 1e9),
        "OutputTokenRate": (1, 1e9),
        "CapacityRequests": (1, 1e6),
        "HeadroomRequests": (0, 1e6),
        },
    ),
    (
        {"Fleet": "test"},
        {
            "FleetReadyMembers": (1, 1),
            "FleetUnreadyMembers": (1, 1),
            "FleetFrozen": (0, 0),
            "FleetRequestRate": (0.01, 1e6),
            "FleetErrorRate": (0, 100),
            "FleetShedRate": (0, 100),
            "FleetTimeToFirstTokenP99": (1e-4, 100),
            "FleetDurationP99": (1e-4, 100),
            "FleetInputTokenRate": (1, 1e9),
            "FleetOutputTokenRate": (1, 1e9),
            "FleetCapacityRequests": (1, 1e6),
            "FleetHeadroomRequests": (0, 1e6),
            "FleetFailoverRate": (0, 1e6),
            "FleetRefusalRate": (0, 1e6),
            "FleetLimitRefusalRate": (0, 1e6),
            "FleetSpendPerHour": (1e-9, 1e9),
        },
    ),
    (
        {"Fleet": "test", "Member": "near"},
        {
            "MemberReady": (1, 1),
            "MemberHeartbeatAge": (0, 60),
            "MemberRoundTrip": (0, 60),
            "MemberRamp": (1, 100),
            "MemberInFlight": (0, 1e6),
            "MemberLoad": (0, 100),
            "MemberRequestRate": (0.01, 1e6),
            "MemberFailoverRate": (0, 1e6),
            "MemberSpendPerHour": (1e-9, 1e9),
        },
    ),
    ({"Fleet": "test", "Member": "absent"}, {"MemberReady": (0, 0), "MemberRequestRate": (0, 0)}),
]
LIMIT_SECONDS = 60


def latest(client, dimensions, name):
    now = datetime.datetime.now(datetime.timezone.utc)
    answer = client.get_metric_statistics(
        Namespace=NAMESPACE,
        MetricName=name,
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=now - datetime.timedelta(minutes=10),
        EndTime=now + datetime.timedelta(minutes=1),
        Period=60,
        Statistics=["Maximum"],
    )
    points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
    return points[-1]["Maximum"] if points else None


def main():
    client = boto3.client(
        "cloudwatch",
        endpoint_url=sys.argv[1],
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    deadline = time.monotonic() + LIMIT_SECONDS
    missing = [(of, name, bounds) for of, names in WANTED for name, bounds in names.items()]
    while missing and time.monotonic() < deadline:
        still = []
        for of, name, (least, most) in missing:
            value = latest(client, of, name)
            if value is not None and least <= value <= most:
                print(f"    {' '.join(of.values())} {name}: {value:g}")
            else:
                still.append((of, name, (least, most)))
        missing = still
        time.sleep(0.5)
    for of, name, _ in missing:
        print(f"    FAILED  {' '.join(of.values())} {name}: {latest(client, of, name)}")
    sys.exit(1 if missing else 0)


main()
