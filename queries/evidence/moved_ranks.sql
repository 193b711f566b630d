-- question: Which ranks compute longer than the others in another run of the job, too, on other hosts?
SELECT rank FROM moved_ranks ORDER BY rank
