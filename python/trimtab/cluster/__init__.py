"""Work on the nodes of a Ray cluster: the extra `ray`.

Ray starts the processes, deals out the work, and does again what a node lost. Here is what Trimtab adds: the
same version everywhere, results in the order of the work, and errors that name the remedy. What comes back
has the same bytes as on one machine::

    runs = trimtab.compare(cc=["cubic", "bbr"], traces="cellular:seed=1", seeds=50, ray="auto")

Read first: ``connection.py``, for work without a memory; then ``workers.py``, for connections under way.
"""

from trimtab.cluster.connection import Cluster, ClusterError
from trimtab.cluster.workers import Workers

__all__ = ["Cluster", "ClusterError", "Workers"]
