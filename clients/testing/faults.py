"""Makes the calls of the cases with the Python client and prints what each gave, or the name of its error."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from virtual_servers import Client, Listing


def run(call):
    client = Client(call["url"], os.environ["KEY"], timeout=call.get("seconds", 60), sleep=lambda seconds: None)
    method = getattr(client, re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), call["id"]))
    options = {"if_match": call["ifMatch"]} if "ifMatch" in call else {}
    try:
        answer = method(*call.get("path", []), **call.get("body", {}), **options)
        return {"gives": list(answer) if isinstance(answer, Listing) else answer}
    except Exception as error:
        name = re.sub("Error$", "", type(error).__name__)
        return {"throws": "Connection" if name == "NoAnswer" else name, "says": f"{error} {error!r}"}


with ThreadPoolExecutor(8) as threads:
    print(json.dumps(list(threads.map(run, json.loads(sys.argv[1])))))
