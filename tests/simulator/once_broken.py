"""Random lives that were broken once: they are lived in every run, beside those that are drawn anew.

A number means what random_lives.py draws from it, which also asks how much there is to disturb in a calm
life. Who changes that changes what all of these are: then a story that matters is put down as a life of its
own (workloads.py), or as a table. Each has one besides, where it was mended.
"""

ONCE_BROKEN = {
    71660: "two leaders: a watch that is late, and other words for the same condition in turns",
    5001830: "two leaders: one whose watch of pods has stopped took back the counts of the other, in turns",
    5003228: "a back-off was forgotten after a turn that had not asked for what was refused",
    5022997: "two leaders: a list made too late broke a try off, and a try fewer ended by itself (simulator)",
    5029013: "two leaders: two jobs got the same ports of one node, and waited for each other for ever",
    5041778: "the same ports",
    5043190: "a pod without its labels was not counted, as another one failed too soon",
    5044685: "the same ports",
    5045721: "two leaders: a list of peers that the other had made was still called refused",
    5048436: "a back-off was forgotten",
    6002804: "a back-off was forgotten",
    6005436: "a back-off was forgotten, over a suspension",
    6027360: "the same ports",
    6047717: "two leaders: ports were given back when all pods had found a place (while that was mended)",
    3067462059: "a pod lost its labels before it began, and was taken for one of the first try (simulator)",
    3067504614: "waits that a server had asked for were counted as refusals (simulator)",
    3067541160: "two edits that were taken back left an empty run policy (simulator)",
}
