"""Waits until a CloudWatch (address: first argument) has what a gateway under load reports."""

import datetime
import sys
import time

import boto3

NAMESPACE = "Wicketgate"
DIMENSIONS = [{"Name": "Cluster", "Value": "test"}]
# Name: what its values are between, once there was load.
WANTED = {
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
}
LIMIT_SECONDS = 60


def latest(client, name):
    now = datetime.datetime.now(datetime.timezone.utc)
    answer = client.get_metric_statistics(
        Namespace=NAMESPACE,
        MetricName=name,
        Dimensions=DIMENSIONS,
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
    missing = dict(WANTED)
    while missing and time.monotonic() < deadline:
        for name, (least, most) in list(missing.items()):
            value = latest(client, name)
            if value is not None and least <= value <= most:
                print(f"    {name}: {value:g}")
                del missing[name]
        time.sleep(0.5)
    for name in missing:
        print(f"    FAILED  {name}: {latest(client, name)}")
    sys.exit(1 if missing else 0)


main()
