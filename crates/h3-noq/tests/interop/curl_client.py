"""Fetch URLs one by one with libcurl; print each one's path, HTTP version and body's SHA-256."""

import hashlib
import sys
from urllib.parse import urlsplit

from curl_cffi import CurlHttpVersion, requests

with requests.Session(http_version=CurlHttpVersion.V3ONLY, verify=False, timeout=60) as session:
    for url in sys.argv[1:]:
        answer = session.get(url)
        answer.raise_for_status()
        version = "h3" if answer.http_version == CurlHttpVersion.V3 else answer.http_version
        print(urlsplit(url).path, version, hashlib.sha256(answer.content).hexdigest())
